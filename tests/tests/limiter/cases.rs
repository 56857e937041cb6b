//! The behaviour suite: every case runs on both stores, and after each call and each case what always holds is checked
//! (see `case.rs`). Where time passes on the real one, what is expected follows from the times that the replies name,
//! so that a slow machine changes nothing.

mod counting;
mod refilling;
mod several_limits;
mod shadow;
mod subjects;

mod ban;
mod by_hand;
mod change;
mod giving;
mod overrides;
mod quota;

mod foreign_values;
