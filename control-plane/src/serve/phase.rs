//! How far a service is from its end.

/// The phases of a service, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Everything is answered.
    Serving,
    /// Everything is still answered, but callers are told to go elsewhere.
    Draining,
    /// Nothing new is accepted; what is in flight finishes.
    Closing,
}
