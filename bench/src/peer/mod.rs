//! What Sluicegate is measured beside.

mod bare;
mod limitador;

pub(crate) use self::{bare::Bare, limitador::Limitador};
