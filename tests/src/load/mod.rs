//! Load on a service's `POST /v1/check`, steady or all at once.

mod samples;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant as TokioInstant, MissedTickBehavior, interval_at},
};

pub use self::samples::{Sample, Samples};
use crate::{Client, until};

/// Requests at once on one HTTP/2 connection: no more than the service takes (`control-plane/src/serve/connection.rs`),
/// or they would wait in the client.
const STREAMS: usize = 1000;

/// One request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Whom it is about, to find it again among the samples.
    pub subject: String,
    /// The body.
    pub body: Value,
}

impl Ask {
    /// Takes `cost` tokens of one policy for one subject.
    #[must_use]
    pub fn take(policy: &str, subject: impl Into<String>, cost: u64) -> Self {
        let subject = subject.into();
        let body = json!({ "checks": [{ "policy": policy, "key": subject, "cost": cost }] });
        Self { subject, body }
    }
}

/// Workers that ask at a steady pace until stopped. They run on the runtime that started them: a test that blocks needs
/// `flavor = "multi_thread"`.
#[derive(Debug)]
pub struct Load {
    stop: watch::Sender<bool>,
    workers: JoinSet<Vec<Sample>>,
    answered: Arc<AtomicU64>,
}

impl Load {
    /// Starts `workers` that share a rate and take the clients in turn. The request maker gets 0, 1, 2 and so on. A
    /// worker whose answer is late leaves out what it should have asked meanwhile, so as many requests as workers are
    /// under way at most.
    ///
    /// # Panics
    /// When there are no clients, no workers, or no rate.
    #[must_use]
    pub fn start(
        clients: &[Client],
        workers: u32,
        per_second: u32,
        request: impl Fn(u64) -> Ask + Send + Sync + 'static,
    ) -> Self {
        assert!(!clients.is_empty() && workers > 0 && per_second > 0, "a load needs clients, workers and a rate");
        let (stop, stopped) = watch::channel(false);
        let request: Arc<dyn Fn(u64) -> Ask + Send + Sync> = Arc::new(request);
        let (next, answered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (begin, between) = (TokioInstant::now(), Duration::from_secs(1) / per_second);
        let mut tasks = JoinSet::new();
        for worker in 0..workers {
            // Each a little later than the one before, so that they don't ask all at once.
            let mut pace = interval_at(begin + between * worker, between * workers);
            pace.set_missed_tick_behavior(MissedTickBehavior::Skip);
            let client = clients[worker as usize % clients.len()].clone();
            let (request, next, mut stopped) = (Arc::clone(&request), Arc::clone(&next), stopped.clone());
            let answered = Arc::clone(&answered);
            tasks.spawn(async move {
                let mut samples = Vec::new();
                loop {
                    tokio::select! {
                        biased;
                        _ = stopped.wait_for(|stopped| *stopped) => return samples,
                        _ = pace.tick() => {}
                    }
                    let ask = request(next.fetch_add(1, Ordering::Relaxed));
                    samples.push(Sample::of(&client, ask).await);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Self { stop, workers: tasks, answered }
    }

    /// Waits until `more` requests have been answered, in whatever way.
    ///
    /// # Errors
    /// When they aren't within a minute.
    pub async fn go_on_for(&self, more: u64) -> Result<()> {
        let goal = self.answered.load(Ordering::Relaxed) + more;
        let what = format!("{more} more answers");
        until(&what, Duration::from_secs(60), async || (self.answered.load(Ordering::Relaxed) >= goal).then_some(()))
            .await
    }

    /// Sends no more, waits for the answers under way, and gives what was seen.
    ///
    /// # Panics
    /// When the request maker did.
    pub async fn stop(self) -> Samples {
        self.stop.send_replace(true);
        Samples::new(self.workers.join_all().await.into_iter().flatten())
    }
}

/// Asks a service `requests` times, `concurrency` at once, over as few HTTP/2 connections as that takes. The waits
/// include this process's own work, which for thousands at once is seconds in a debug build.
///
/// # Errors
/// When a client can't be built.
///
/// # Panics
/// When the request maker does.
pub async fn burst(
    port: u16,
    requests: u64,
    concurrency: usize,
    request: impl Fn(u64) -> Ask + Send + Sync + 'static,
) -> Result<Samples> {
    ensure!(concurrency > 0, "a burst needs a concurrency");
    let clients = (0..concurrency.div_ceil(STREAMS)).map(|_| Client::new_http2(port)).collect::<Result<Vec<_>>>()?;
    // Connected, so that a burst is one.
    for client in &clients {
        client.get("/healthz").await?;
    }
    let (request, next) = (Arc::new(request), Arc::new(AtomicU64::new(0)));
    let mut workers = JoinSet::new();
    for worker in 0..concurrency {
        let client = clients[worker % clients.len()].clone();
        let (request, next) = (Arc::clone(&request), Arc::clone(&next));
        workers.spawn(async move {
            let mut samples = Vec::new();
            loop {
                let sequence = next.fetch_add(1, Ordering::Relaxed);
                if sequence >= requests {
                    return samples;
                }
                samples.push(Sample::of(&client, request(sequence)).await);
            }
        });
    }
    Ok(Samples::new(workers.join_all().await.into_iter().flatten()))
}

impl Sample {
    async fn of(client: &Client, ask: Ask) -> Self {
        let Ask { subject, body } = ask;
        let sent_at = Instant::now();
        let answer = client.check(&body).await;
        let elapsed = sent_at.elapsed();
        let (status, detail) = match answer {
            Ok(answer) if matches!(answer.status, 200 | 429) => (Some(answer.status), String::new()),
            Ok(answer) => {
                let problem: Option<Value> = serde_json::from_slice(&answer.body).ok();
                let detail = problem.as_ref().and_then(|problem| problem["detail"].as_str()).map(str::to_owned);
                let text = || String::from_utf8_lossy(&answer.body).into_owned();
                (Some(answer.status), detail.unwrap_or_else(text))
            }
            Err(error) => (None, format!("{error:#}")),
        };
        Self { subject, sent_at, elapsed, status, detail }
    }
}
