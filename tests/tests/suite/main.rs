//! Sluicegate's parts together: real Redis, real service, real filter in real Envoy.

mod fault_proxy;
mod harness;
mod harness_load;
mod harness_redis;
mod verdict;

mod script_contract;

mod admin_api;
mod answers;
mod canaries;
mod command_line;
mod compose_files;
mod documented;
mod exactness;
mod leases;
mod openapi;
mod overview;
mod policies;
mod reload;
mod schemathesis;
mod secrets;
mod secured;

mod restarts;
mod service_faults;
mod service_metrics;
mod store_faults;
mod store_kinds;

mod header_bytes;

mod filter_breaker;
mod filter_charge;
mod filter_deny_cache;
mod filter_dispatch;
mod filter_grpc;
mod filter_identity;
mod filter_lease;
mod filter_lease_exact;
mod filter_local;
mod filter_looks;
mod filter_memory;
mod filter_metrics;
mod filter_reload;
mod filter_rules;
mod filter_shadow;
mod filter_transport;

mod rate_limit_filter;
mod rate_limit_service;

mod envoy_file;
mod manifests;

mod observe;

mod doc_samples;
mod ratelimit_migration;
