//! The real binary as a child process, and the small HTTP/1.1 client that its tests need.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufStream},
    net::TcpStream,
    time::{sleep, timeout},
};

/// Far longer than anything here takes; only a fault meets it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running `sluicegate serve`, killed when dropped.
pub(crate) struct Service {
    child: Child,
    log: mpsc::Receiver<String>,
    _directory: TempDir,
    /// Where checks are answered.
    pub(crate) data: SocketAddr,
    /// The admin listener.
    pub(crate) admin: SocketAddr,
}

impl Service {
    /// Starts a service whose store can't be reached. `drain` is as in the configuration.
    pub(crate) fn start(drain: &str) -> Self {
        Self::configured(&format!("drain: {drain}"))
    }

    /// The same with these lines of configuration; without theirs it listens at free ports.
    pub(crate) fn configured(fields: &str) -> Self {
        Self::launched(fields, command())
    }

    /// The same by a command of the test's own, which gets the arguments of the binary.
    pub(crate) fn launched(fields: &str, mut command: Command) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sluicegate.yaml");
        std::fs::write(&file, configuration(fields, directory.path())).unwrap();
        let mut child = command
            .args(["serve", "--config"])
            .arg(file)
            .env("SLUICEGATE_LOG_FORMAT", "json")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, log) = mpsc::channel();
        std::thread::spawn(move || {
            // Ends with the process, or with the test.
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut service = Self {
            child,
            log,
            _directory: directory,
            data: SocketAddr::from(([0; 4], 0)),
            admin: SocketAddr::from(([0; 4], 0)),
        };
        let listening = service.logged("listening");
        let address = |field: &str| listening[field].as_str().unwrap().parse().unwrap();
        (service.data, service.admin) = (address("data"), address("admin"));
        service
    }

    /// Waits for the log line with this message.
    pub(crate) fn logged(&self, message: &str) -> serde_json::Value {
        loop {
            let line = self.log.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("not logged: {message}"));
            let line: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            if line["message"] == message {
                return line;
            }
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The lines that were logged and not looked at yet.
    pub(crate) fn logged_since(&self) -> Vec<String> {
        self.log.try_iter().collect()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end of the process.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        until("the process ends", async || self.child.try_wait().unwrap()).await
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary under test, without this process's environment.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
    command.env_clear();
    command
}

/// The binary under test, started by a line of shell that says how; `"$@"` in it is the binary with its arguments.
pub(crate) fn shell(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.env_clear().args(["-c", line, "sh", env!("CARGO_BIN_EXE_sluicegate")]);
    command
}

fn configuration(fields: &str, directory: &Path) -> String {
    let store = format!("store: {{ url: 'unix://{}' }}", directory.join("nobody.sock").display());
    let others = [
        "listen: 127.0.0.1:0",
        "admin: { listen: 127.0.0.1:0 }",
        &store,
        "policies: { api: { limits: [ { name: burst, capacity: 1, refill: 1, per: 1s } ] } }",
    ];
    let own = |other: &&str| {
        let field = other.split_inclusive(':').next().unwrap();
        fields.lines().any(|line| line.starts_with(field))
    };
    let others = others.into_iter().filter(|other| !own(other)).collect::<Vec<_>>().join("\n");
    format!("{fields}\n{others}\n")
}

/// Polls until there is something.
pub(crate) async fn until<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = poll().await {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited too long until {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// An HTTP/1.1 connection that shows what really goes over it.
pub(crate) struct Http1<S = TcpStream>(BufStream<S>);

impl Http1 {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self(BufStream::new(TcpStream::connect(address).await.unwrap()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http1<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self(BufStream::new(stream))
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// An answer's head, in lower case, without its body.
    pub(crate) async fn answer(&mut self) -> String {
        self.whole_answer().await.0
    }

    /// The same with its body.
    pub(crate) async fn whole_answer(&mut self) -> (String, String) {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = timeout(PATIENCE, self.0.read_line(&mut head)).await.expect("an answer").unwrap();
            assert_ne!(read, 0, "closed instead of answered: {head:?}");
        }
        head.make_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.0.read_exact(&mut body).await.unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    /// Asks `POST /v1/check` with further headers, each with its line's end.
    pub(crate) async fn check(&mut self, headers: &str, body: &str) -> String {
        let length = body.len();
        self.write(&format!(
            "POST /v1/check HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ))
        .await;
        self.answer().await
    }

    pub(crate) async fn get(&mut self, path: &str) -> String {
        self.get_with(path, "").await.0
    }

    /// With these lines in the head; the answer's head and body.
    pub(crate) async fn get_with(&mut self, path: &str, lines: &str) -> (String, String) {
        self.write(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n")).await;
        self.whole_answer().await
    }

    /// Waits for the service to close the connection without another byte.
    pub(crate) async fn closed(&mut self) {
        let mut rest = Vec::new();
        timeout(PATIENCE, self.0.read_to_end(&mut rest)).await.expect("to be closed").unwrap();
        assert!(rest.is_empty(), "more came: {:?}", String::from_utf8_lossy(&rest));
    }

    /// Waits for the service to close the connection, or to break it, without an answer to what was asked.
    pub(crate) async fn ended(&mut self) {
        let mut rest = Vec::new();
        let _ = timeout(PATIENCE, self.0.read_to_end(&mut rest)).await.expect("to be closed");
        assert!(!rest.starts_with(b"HTTP"), "answered: {:?}", String::from_utf8_lossy(&rest));
    }
}
