//! The limiter: scripts and policies, on the store in this process and on real Redis.
#![forbid(unsafe_code)]

mod case;
mod policies;
mod redis_rig;
mod rig;
mod slot;
mod store;

mod cases;
mod clock;
mod commands;
mod real_redis;
mod reported;

mod bounds;

mod token_bucket;

mod joined;
mod model;
mod sequences;
