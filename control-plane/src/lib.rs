//! The control service: takes checks over HTTP, decides each with one atomic script in Redis, and says how long to
//! wait.
//!
//! In the order of one request: [`serve`] accepts its connection, [`api`] reads it and answers it, [`limiter`] turns
//! its checks into one take by the [`policies`] in use, [`store`] runs that in Redis. Before any request, [`cli`] reads
//! the command line and [`config`] the file. What is seen of it from outside is in [`metrics`], [`history`], [`trace`]
//! and [`log`].
#![forbid(unsafe_code)]

pub mod cli;
pub mod config;
pub mod log;

pub mod renewed;

pub mod serve;

pub mod api;

pub mod limiter;

pub mod history;
pub mod metrics;
pub mod plugin;
pub mod policies;
pub mod top;
pub mod trace;

pub mod store;
