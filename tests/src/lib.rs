//! Real Redis, Sluicegate and Envoy processes on free ports, for the suites in `tests/suite` and for the demo.
//!
//! Each fixture owns its process: it starts it, waits by polling until it answers, keeps its log in a directory of its
//! own, and kills it on drop. When the owning test fails, the logs are printed. The servers that a fault needs and no
//! real part can play (garbage instead of an answer) run inside the test.
#![forbid(unsafe_code)]

mod interrupt;
mod poll;
mod port;
mod process;
mod quiet;
mod tools;

mod certificates;
mod cluster;
mod node;
mod redis_server;
mod sentinels;
mod service;
mod tls_redis;

mod envoy;

mod fault_proxy;
mod raw_server;
mod stand_in;
mod upstream;

mod browser;
mod client;
mod grpc;
mod load;
mod page;
mod prometheus;
mod rate_limit;
mod stack;
mod story;
mod tls_client;

pub use browser::Browser;
pub use certificates::Certificates;
pub use client::{Answer, Client, exchange, exchange_over};
pub use cluster::{Cluster, Migration};
pub use envoy::{Envoy, Overlay};
pub use fault_proxy::{FaultProxy, Traffic};
pub use grpc::{GrpcAnswer, grpc_call, grpc_ok};
pub use interrupt::interrupt;
pub use load::{Ask, Load, Sample, Samples, burst};
pub use node::Node;
pub use page::{Block, Page, Place, Role, Shown, same_output};
pub use poll::until;
pub use port::Port;
pub use process::{Process, Signal};
pub use prometheus::Prometheus;
pub use quiet::quiet;
pub use rate_limit::{Code, Descriptor, DescriptorStatus, Entry, RateLimitClient, RateLimitRequest, RateLimitResponse};
pub use raw_server::RawServer;
pub use redis_server::Redis;
pub use sentinels::Sentinels;
pub use service::Service;
pub use stack::Stack;
pub use stand_in::{Reply, StandIn};
pub use story::{Stage, Story};
pub use tls_client::connect_tls;
pub use tls_redis::TlsRedis;
pub use tools::{Tool, repository};
pub use upstream::{Seen, Upstream};
