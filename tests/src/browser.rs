//! A real browser, headless, with one page.
//!
//! WebDriver is JSON over HTTP, and this much of it is small: a client of its own would bring twenty crates.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Port, Process, Tool, until};

/// Longer than anything that a page does here.
const DEADLINE: Duration = Duration::from_secs(20);

/// Chromium, driven by chromedriver.
#[derive(Debug)]
pub struct Browser {
    // Before the process: who drops it ends the session while there is a driver.
    session: Session,
    _driver: Process,
    _directory: TempDir,
}

#[derive(Debug)]
struct Session {
    http: reqwest::Client,
    port: Port,
    id: String,
}

impl Browser {
    /// A browser with an empty page.
    ///
    /// # Errors
    /// When chromedriver or Chromium is missing or doesn't start.
    pub async fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let port = Port::lease()?;
        let mut command = Command::new(Tool::Chromedriver.path()?);
        command.arg(format!("--port={}", port.number())).env("TMPDIR", directory.path());
        let mut driver = Process::spawn("chromedriver", &mut command, &directory.path().join("chromedriver.log"))?;
        let http = reqwest::Client::builder().no_proxy().timeout(2 * DEADLINE).build()?;
        let status = format!("http://127.0.0.1:{}/status", port.number());
        driver.ready(async || http.get(&status).send().await.is_ok_and(|answer| answer.status() == 200)).await?;
        let mut session = Session { http, port, id: String::new() };
        // Without its sandbox, which neither root nor most containers can have; the pages are ours. It calls nobody.
        let args = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": { "args": args, "binary": Tool::Chromium.path()? },
        } } });
        let made = session.call(Method::POST, "/session", &wanted).await?;
        session.id = made["sessionId"].as_str().context("chromedriver made no session")?.to_owned();
        Ok(Self { session, _driver: driver, _directory: directory })
    }

    /// Opens a page and waits until it is loaded.
    ///
    /// # Errors
    /// When it can't be loaded.
    pub async fn open(&self, url: &str) -> Result<()> {
        self.post("/url", json!({ "url": url })).await.map(drop)
    }

    /// What a function with this body returns in the page.
    ///
    /// # Errors
    /// When it throws.
    pub async fn run(&self, body: &str) -> Result<Value> {
        self.post("/execute/sync", json!({ "script": body, "args": [] })).await
    }

    /// Waits until an expression is true in the page.
    ///
    /// # Errors
    /// When it throws or isn't in time; the message says what the page shows.
    pub async fn until(&self, expression: &str) -> Result<()> {
        let body = format!("return Boolean({expression})");
        let probe = async || (self.run(&body).await.ok()? == true).then_some(());
        if let Err(error) = until(expression, DEADLINE, probe).await {
            let shown = self.run("return document.body.innerText").await?;
            bail!("{error}; the page shows: {shown}");
        }
        Ok(())
    }

    /// Clicks on the first element that a selector finds, as a mouse would: it must be visible.
    ///
    /// # Errors
    /// When there is none, or something is in front of it.
    pub async fn click(&self, selector: &str) -> Result<()> {
        let element = self.find(selector).await?;
        self.post(&format!("/element/{element}/click"), json!({})).await.map(drop)
    }

    /// Types into the first element that a selector finds.
    ///
    /// # Errors
    /// As [`Browser::click`].
    pub async fn write(&self, selector: &str, text: &str) -> Result<()> {
        let element = self.find(selector).await?;
        self.post(&format!("/element/{element}/value"), json!({ "text": text })).await.map(drop)
    }

    /// Makes the page this large, in CSS pixels, smaller than a window can be.
    ///
    /// # Errors
    /// When the driver refuses.
    pub async fn resize(&self, width: u32, height: u32) -> Result<()> {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await
    }

    /// Prefers the dark colours, or the light ones.
    ///
    /// # Errors
    /// When the driver refuses.
    pub async fn prefer_dark(&self, dark: bool) -> Result<()> {
        let value = if dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.devtools("Emulation.setEmulatedMedia", features).await
    }

    /// What the console said since the last time: errors of scripts, answers that are failures, and what the policy of
    /// the page's content forbade.
    ///
    /// # Errors
    /// When the driver refuses.
    pub async fn console(&self) -> Result<Vec<String>> {
        let entries = self.post("/se/log", json!({ "type": "browser" })).await?;
        let message = |entry: &Value| entry["message"].as_str().unwrap_or_default().to_owned();
        Ok(entries.as_array().context("no list of messages")?.iter().map(message).collect())
    }

    async fn devtools(&self, command: &str, parameters: Value) -> Result<()> {
        self.post("/goog/cdp/execute", json!({ "cmd": command, "params": parameters })).await.map(drop)
    }

    async fn find(&self, selector: &str) -> Result<String> {
        let found = self.post("/element", json!({ "using": "css selector", "value": selector })).await?;
        // The key is the same in every WebDriver, by its specification.
        let element = found["element-6066-11e4-a52e-4f735466cecf"].as_str();
        Ok(element.with_context(|| format!("nothing is at {selector}"))?.to_owned())
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value> {
        self.session.call(Method::POST, &format!("/session/{}{path}", self.session.id), &body).await
    }
}

impl Session {
    async fn call(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let url = format!("http://127.0.0.1:{}{path}", self.port.number());
        let answer: Value = self.http.request(method, url).json(body).send().await?.json().await?;
        match answer["value"]["error"].as_str() {
            None => Ok(answer["value"].clone()),
            Some(error) => bail!("{path} {body}: {error}: {}", answer["value"]["message"]),
        }
    }
}

/// Ends Chromium, which would outlive a driver that is killed. A drop can't wait for a future, so by hand.
impl Drop for Session {
    fn drop(&mut self) {
        let end = || -> std::io::Result<()> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port.number()))?;
            stream.set_read_timeout(Some(DEADLINE))?;
            write!(stream, "DELETE /session/{} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n", self.id)?;
            stream.read(&mut [0; 64]).map(drop)
        };
        if let Err(error) = end() {
            eprintln!("chromium may still run: {error}");
        }
    }
}
