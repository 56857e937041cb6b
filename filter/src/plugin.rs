//! The root context: one configuration.

use std::{cell::RefCell, rc::Rc};

use proxy_wasm::{
    traits::{Context, HttpContext, RootContext},
    types::{ContextType, LogLevel},
};
use sluicegate_filter_core::{Asked, Config, Failure, FailureLog};

use crate::{host, stream::Stream};

/// What the requests of one configuration share. A changed configuration is a new root context with its own plugin, so
/// requests in flight finish under the one that they began with.
pub(crate) struct Plugin {
    pub(crate) config: Config,
    failures: RefCell<FailureLog>,
}

impl Plugin {
    /// Logs a failure to get an answer, now and then.
    pub(crate) fn failed(&self, asked: &Asked, failure: &Failure) {
        let line = self.failures.borrow_mut().note(host::now_ms(), &asked.rule, failure);
        if let Some(line) = line {
            host::log(LogLevel::Warn, &line);
        }
    }
}

/// The root context before and after configuration.
#[derive(Default)]
pub(crate) struct Root {
    plugin: Option<Rc<Plugin>>,
}

impl Context for Root {}

impl RootContext for Root {
    /// False refuses the configuration: the proxy doesn't start with it, or keeps the one it has.
    fn on_configure(&mut self, _size: usize) -> bool {
        match Config::parse(&host::plugin_configuration()) {
            Ok(config) => {
                self.plugin = Some(Rc::new(Plugin { config, failures: RefCell::default() }));
                true
            }
            Err(error) => {
                host::log(LogLevel::Error, &format!("sluicegate: {error}"));
                false
            }
        }
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, _id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Stream::new(self.plugin.clone())))
    }
}
