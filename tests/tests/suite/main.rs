//! Sluicegate's parts together: real Redis, real service, real filter in real Envoy.

mod fault_proxy;
mod harness;
mod harness_load;
mod harness_redis;
mod verdict;

mod script_contract;

mod answers;
mod exactness;
mod policies;
mod secrets;

mod service_faults;
mod store_faults;
mod store_kinds;

mod header_bytes;

mod envoy_file;
