//! The harness's Redis Cluster and Sentinels, each of whose promises the suites that use them lean on.

mod cluster;
mod sentinels;
