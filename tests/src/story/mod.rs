//! The story that the demo tells and the compose project is held to: limits, the store gone, the store back.

mod table;

use std::time::Duration;

use anyhow::Result;
use reqwest::Method;
use sluicegate_wire::header;

use crate::{
    client::{Answer, Client},
    poll::until,
};
use table::Row;

/// Where it takes place, with the policies of `sluicegate.yaml` and the rules of `envoy/envoy.yaml`.
#[expect(async_fn_in_trait, reason = "no stage is told of on another thread")]
pub trait Stage {
    /// A client of Envoy.
    ///
    /// # Errors
    /// When it can't be made.
    fn client(&self) -> Result<Client>;

    /// How many keys are in the store, each of which must have a TTL.
    ///
    /// # Errors
    /// When the store can't be asked, or a key has none.
    fn expiring_keys(&mut self) -> Result<usize>;

    /// Stops the store.
    ///
    /// # Errors
    /// When it goes on.
    async fn stop_store(&mut self) -> Result<()>;

    /// Starts it again, empty.
    ///
    /// # Errors
    /// When it doesn't start.
    async fn start_store(&mut self) -> Result<()>;
}

/// What happened, and one 429 in full.
pub struct Story {
    rows: Vec<Row>,
    denial: Answer,
}

impl Story {
    /// Plays every step, whatever the one before it came to.
    ///
    /// # Errors
    /// When the stage fails: what comes back otherwise than expected is a part of the story.
    pub async fn tell(stage: &mut impl Stage) -> Result<Self> {
        let client = stage.client()?;
        warm_up(&client).await?;
        let mut rows = vec![
            once_counted(&client, "within the limit", API).await?,
            until_denied(&client, "over the limit", API).await?.0,
            once_counted(&client, "another API key", API_OF_BOB).await?,
            until_denied(&client, "a tighter limit", LOGIN).await?.0,
        ];
        let keys = stage.expiring_keys()?;
        rows.push(Row {
            step: "no key is for ever",
            sent: "SCAN and PTTL".to_owned(),
            expected: "a TTL each",
            got: format!("{keys} keys with a TTL"),
            ok: keys > 0,
        });

        stage.stop_store().await?;
        rows.push(once(&client, "Redis stopped: open", API, "200 failure_open").await?);
        rows.push(once(&client, "Redis stopped: closed", LOGIN, "429 failure_closed").await?);

        stage.start_store().await?;
        warm_up(&client).await?;
        rows.push(once_counted(&client, "Redis back", API).await?);
        let (again, denial) = until_denied(&client, "limits work again", LOGIN).await?;
        rows.push(again);
        Ok(Self { rows, denial })
    }

    /// Whether each step came out as it should.
    #[must_use]
    pub fn all_ok(&self) -> bool {
        self.rows.iter().all(|row| row.ok)
    }

    /// The story for the terminal.
    #[must_use]
    pub fn render(&self) -> String {
        let headers = self.denial.headers.iter();
        let headers = headers.map(|(name, value)| format!("  {name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
        format!(
            "{}\nThe last answer over the limit, in full:\n  HTTP/1.1 {}\n{}\n  {}\n",
            table::render(&self.rows),
            self.denial.status,
            headers.collect::<String>(),
            String::from_utf8_lossy(&self.denial.body),
        )
    }
}

/// More than either bucket of `sluicegate.yaml` holds.
const ENOUGH: usize = 200;

/// A request of the story.
#[derive(Clone, Copy)]
struct Ask {
    method: &'static str,
    path: &'static str,
    key: Option<&'static str>,
}

const API: Ask = Ask { method: "GET", path: "/api/hello", key: Some("alice") };
const API_OF_BOB: Ask = Ask { key: Some("bob"), ..API };
const LOGIN: Ask = Ask { method: "POST", path: "/login", key: None };

impl Ask {
    async fn send(self, client: &Client) -> Result<Answer> {
        let headers: Vec<_> = self.key.iter().map(|key| ("x-api-key", *key)).collect();
        client.send(Method::from_bytes(self.method.as_bytes())?, self.path, &headers).await
    }

    fn text(self) -> String {
        let key = self.key.map(|key| format!(" ({key})")).unwrap_or_default();
        format!("{} {}{key}", self.method, self.path)
    }
}

/// Waits for one request, of a user who is not in the story, to be counted: first connections take longer than the
/// file's 25 ms allow.
async fn warm_up(client: &Client) -> Result<()> {
    let ask = Ask { key: Some("warm-up"), ..API };
    until("a request to be counted", Duration::from_secs(10), async || {
        ask.send(client).await.ok().filter(|answer| counted(answer) || over_limit(answer)).map(|_| ())
    })
    .await
}

/// Longer than the filter answers from memory those that it denied a moment ago (`deny_cache.max_life`, 1 s).
const DENY_CACHE: Duration = Duration::from_secs(5);

/// One request while the store is away, once it is no longer denied from memory.
async fn once(client: &Client, step: &'static str, ask: Ask, expected: &'static str) -> Result<Row> {
    let answer = until("the filter to forget a denial", DENY_CACHE, async || match ask.send(client).await {
        Ok(answer) if over_limit(&answer) => None,
        other => Some(other),
    })
    .await??;
    let got = outcome(&answer);
    Ok(Row { step, sent: ask.text(), expected, ok: got == expected, got })
}

/// One request that passes and is counted.
async fn once_counted(client: &Client, step: &'static str, ask: Ask) -> Result<Row> {
    let (answer, late) = in_time(client, ask).await?;
    let rate_limit = answer.header(header::RATE_LIMIT).unwrap_or("without RateLimit");
    let got = format!("{}, {rate_limit}{}", outcome(&answer), shown(late));
    Ok(Row { step, sent: ask.text(), expected: "200, RateLimit", got, ok: counted(&answer) })
}

/// Sends one request after the other until the limit strikes; gives the denial as well.
async fn until_denied(client: &Client, step: &'static str, ask: Ask) -> Result<(Row, Answer)> {
    let mut passed = 0;
    let (mut answer, mut late) = in_time(client, ask).await?;
    while counted(&answer) && passed < ENOUGH {
        passed += 1;
        let next = in_time(client, ask).await?;
        (answer, late) = (next.0, late + next.1);
    }
    let retry_after = answer.header(header::RETRY_AFTER).unwrap_or("none");
    let row = Row {
        step,
        sent: format!("{} × {}", ask.text(), passed + 1),
        expected: "200, then 429 over_limit",
        got: format!("{passed} × 200, then {}, Retry-After: {retry_after}{}", outcome(&answer), shown(late)),
        ok: passed > 0 && over_limit(&answer),
    };
    Ok((row, answer))
}

/// Asks again when a busy machine made the answer late, a few times at most, and says how often: a failure verdict is no
/// part of the steps that count.
async fn in_time(client: &Client, ask: Ask) -> Result<(Answer, usize)> {
    let mut answer = ask.send(client).await?;
    for late in 0..4 {
        if !answer.reason().is_some_and(|reason| reason.starts_with("failure_")) {
            return Ok((answer, late));
        }
        answer = ask.send(client).await?;
    }
    Ok((answer, 4))
}

/// Late answers, where there were any.
fn shown(late: usize) -> String {
    if late == 0 { String::new() } else { format!(" ({late} late, asked again)") }
}

fn counted(answer: &Answer) -> bool {
    answer.status == 200 && answer.reason().is_none() && answer.header(header::RATE_LIMIT).is_some()
}

fn over_limit(answer: &Answer) -> bool {
    let told = [header::RETRY_AFTER, header::RATE_LIMIT, header::RATE_LIMIT_POLICY];
    outcome(answer) == "429 over_limit" && told.iter().all(|name| answer.header(name).is_some())
}

/// The status, and the filter's reason where it gives one.
fn outcome(answer: &Answer) -> String {
    let reason = answer.reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    format!("{}{reason}", answer.status)
}
