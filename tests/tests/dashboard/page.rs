//! A service and its dashboard in a browser.

use sluicegate_tests::{Browser, Client, Service};

const SERVICE: &str = "
store: { url: 'memory://', timeout: 5s }
drain: 0s
policies:
  api:
    limits: [{ name: day, capacity: 20, refill: 20, per: 1d, interval: true }]
  login:
    limits: [{ name: day, capacity: 10, refill: 10, per: 1d, interval: true }]
    ban: { after: 100, within: 1h, for: 2h }
";

/// A subject that would run a script, were it ever markup.
pub(crate) const SCRIPT: &str = "<img src=x onerror=alert(1)>";

pub(crate) struct Page {
    pub(crate) browser: Browser,
    pub(crate) service: Service,
}

impl Page {
    /// The page, live.
    pub(crate) async fn open() -> Self {
        let page = Self::open_with("").await;
        page.until("document.querySelector('#live').textContent === 'live'").await;
        page
    }

    /// The page of a service with more configuration.
    pub(crate) async fn open_with(more: &str) -> Self {
        let service = Service::start(&format!("{SERVICE}{more}"), "memory://").await.unwrap();
        let browser = Browser::start().await.unwrap();
        browser.open(&format!("http://127.0.0.1:{}/", service.admin_port())).await.unwrap();
        Self { browser, service }
    }

    /// Takes one token so many times, and returns how often that was allowed.
    pub(crate) async fn take(&self, policy: &str, key: &str, times: usize) -> usize {
        let client = Client::new(self.service.port()).unwrap();
        let mut allowed = 0;
        for _ in 0..times {
            allowed += usize::from(client.take(policy, key, 1).await.unwrap().status == 200);
        }
        allowed
    }

    pub(crate) async fn until(&self, expression: &str) {
        self.browser.until(expression).await.unwrap();
    }

    /// Waits until an element's text is this.
    pub(crate) async fn until_text(&self, selector: &str, text: &str) {
        self.until(&format!("document.querySelector({selector:?})?.innerText === {}", serde_json::json!(text))).await;
    }

    /// Waits until the cells of a table's body are these, row by row.
    pub(crate) async fn until_rows(&self, table: &str, rows: &[&[&str]]) {
        let cells = "[...row.cells].map((cell) => cell.innerText)";
        let found = format!("[...document.querySelector({table:?}).tBodies[0].rows].map((row) => {cells})");
        self.until(&format!("JSON.stringify({found}) === {:?}", serde_json::json!(rows).to_string())).await;
    }

    /// Nothing went wrong in the page, and nothing was forbidden.
    pub(crate) async fn assert_quiet(&self) {
        assert_eq!(self.browser.console().await.unwrap(), [""; 0]);
    }
}
