//! Sluicegate's parts together: real Redis, real service, real filter in real Envoy.

mod harness;
mod verdict;

mod script_contract;

mod answers;
mod exactness;
mod policies;
mod secrets;

mod service_faults;
mod store_faults;

mod header_bytes;

mod envoy_file;
