//! The root context: one configuration.

use std::{cell::RefCell, rc::Rc};

use proxy_wasm::{
    traits::{Context, HttpContext, RootContext},
    types::{ContextType, LogLevel},
};
use sluicegate_filter_core::{
    Asked, Background, Config, Judgement, LeaseTicket, Measure, Outcome, Request, SharedData, Step, Surroundings,
    TICK_MS, Ticket, Worker,
    shared::{Cas, SetError, Stored, Unreadable},
};

use crate::{
    host,
    metrics::Metrics,
    stream::{Stream, outcome},
};

/// What the requests of one configuration share on one worker. A changed configuration is a new root context with its own
/// plugin, so requests in flight finish under the one that they began with.
pub(crate) struct Plugin {
    pub(crate) config: Config,
    worker: RefCell<Worker>,
    metrics: RefCell<Metrics>,
    shared: Shared,
}

impl Plugin {
    fn new(config: Config) -> Self {
        // Proxies may give all of their plugins one space of shared data.
        let name = host::property(&["plugin_name"]).unwrap_or_default();
        Self {
            worker: RefCell::new(Worker::new(&config)),
            metrics: RefCell::new(Metrics::new(config.labels)),
            shared: Shared { prefix: format!("sluicegate.{}.", String::from_utf8_lossy(&name)) },
            config,
        }
    }

    pub(crate) fn begin(&self, request: &dyn Request) -> Step {
        self.worker.borrow_mut().begin(&self.config, request, self.around())
    }

    pub(crate) fn finish(&self, asked: &Asked, ticket: Ticket, outcome: Outcome<'_>) -> Judgement {
        self.worker.borrow_mut().finish(asked, ticket, outcome, self.around())
    }

    fn tick(&self) -> Vec<Background> {
        self.worker.borrow_mut().tick(&self.config, self.around())
    }

    fn leased(&self, ticket: &LeaseTicket, outcome: Outcome<'_>) {
        let (measures, log) = self.worker.borrow_mut().leased(ticket, outcome, self.around());
        if let Some(line) = log {
            host::log(LogLevel::Warn, &line);
        }
        self.measure(measures);
    }

    pub(crate) fn abandon(&self, ticket: Ticket) {
        self.worker.borrow_mut().abandon(ticket, host::now_ms());
    }

    pub(crate) fn measure(&self, measures: impl IntoIterator<Item = Measure>) {
        let mut metrics = self.metrics.borrow_mut();
        for measure in measures {
            metrics.measure(measure);
        }
    }

    fn around(&self) -> Surroundings<'_> {
        Surroundings { now_ms: host::now_ms(), shared: &self.shared }
    }
}

/// What this worker had its part in no longer counts.
impl Drop for Plugin {
    fn drop(&mut self) {
        let measure = self.worker.get_mut().end();
        self.measure(measure);
    }
}

/// The proxy's shared data, under this plugin's name.
struct Shared {
    prefix: String,
}

impl Shared {
    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

impl SharedData for Shared {
    fn get(&self, key: &str) -> Result<Option<Stored>, Unreadable> {
        host::shared_data(&self.key(key))
    }

    fn set(&self, key: &str, value: &[u8], seen: Option<Cas>) -> Result<(), SetError> {
        host::set_shared_data(&self.key(key), value, seen)
    }
}

/// The root context before and after configuration.
#[derive(Default)]
pub(crate) struct Root {
    plugin: Option<Rc<Plugin>>,
    /// Leases asked for, by the token of their callout. They belong to no request, so that none that ends takes the
    /// answer along.
    leases: Vec<(u32, LeaseTicket)>,
}

impl Context for Root {
    fn on_http_call_response(&mut self, token: u32, headers: usize, body_size: usize, _trailers: usize) {
        // Nobody waits for what a refund is answered with.
        let lease = self.leases.iter().position(|(awaited, _)| *awaited == token);
        let lease = lease.map(|at| self.leases.swap_remove(at));
        if let (Some(plugin), Some((_, ticket))) = (&self.plugin, lease) {
            outcome(headers, body_size, |outcome| plugin.leased(&ticket, outcome));
        }
    }
}

impl RootContext for Root {
    /// False refuses the configuration: the proxy doesn't start with it, or keeps the one it has.
    fn on_configure(&mut self, _size: usize) -> bool {
        match Config::parse(&host::plugin_configuration()) {
            Ok(config) => {
                if config.leases() {
                    host::tick_every(TICK_MS);
                }
                self.plugin = Some(Rc::new(Plugin::new(config)));
                true
            }
            Err(error) => {
                host::log(LogLevel::Error, &format!("sluicegate: {error}"));
                false
            }
        }
    }

    fn on_tick(&mut self) {
        let Some(plugin) = &self.plugin else { return };
        for Background { headers, body, timeout, ticket, measure } in plugin.tick() {
            match (host::call(&plugin.config.service.cluster, &headers, &body, timeout), ticket) {
                (Some(token), Some(ticket)) => self.leases.push((token, ticket)),
                (None, Some(ticket)) => plugin.leased(&ticket, Outcome::Refused),
                (Some(_), None) => plugin.measure(measure),
                (None, None) => {}
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
