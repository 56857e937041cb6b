//! The Sluicegate filter: a thin proxy-wasm shell around `sluicegate-filter-core`.
//!
//! The shell only translates: `plugin` holds the configuration, `stream` is one request, `metrics` keeps the ids of
//! metrics, `host` is every call to the proxy. A panic would kill the worker's VM and leave every paused request of it
//! hanging, so nothing here panics, and the SDK's functions that do are banned by `clippy.toml`.
#![deny(
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unreachable,
    clippy::unwrap_used
)]

mod plugin;
mod stream;

mod host;
mod metrics;

#[cfg(test)]
mod tests;

mod start {
    use proxy_wasm::{traits::RootContext, types::LogLevel};

    proxy_wasm::main! {{
        // Also installs the hook that logs a panic's text before the VM dies of it.
        proxy_wasm::set_log_level(LogLevel::Info);
        proxy_wasm::set_root_context(|_| -> Box<dyn RootContext> { Box::<crate::plugin::Root>::default() });
    }}
}
