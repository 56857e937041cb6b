//! `GET /v1/events`: each second as it ends, and what changed.

use std::{collections::VecDeque, convert::Infallible, sync::Arc};

use axum::{
    extract::State,
    http::{HeaderName, header::CACHE_CONTROL},
    response::{IntoResponse, Sse, sse::Event},
};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, watch};

use super::overview::{Health, SecondView};
use crate::{
    api::{App, openapi::RefusedStream, respond::Refusal},
    history::Second,
    serve::Phase,
};

/// Streams at once: each is a connection of the admin listener's, which health checks and metrics need too.
const MAX_STREAMS: usize = 16;

/// The streams of events that there may be. Clones share them.
#[derive(Clone, Debug)]
pub struct EventStreams(Arc<Semaphore>);

impl Default for EventStreams {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_STREAMS)))
    }
}

/// Server-sent events (text/event-stream): `second`, once a second, with `unix_s`, `uptime_s` and `checks` by verdict;
/// and `state`, at first and whenever it changed, with what `GET /v1/overview` has there. Ends when the service is
/// about to stop, or when a reader falls behind by a minute. There may be 16 at once.
#[utoipa::path(get, path = "/v1/events", tag = "service", security((), ("token" = [])), responses(
    (status = OK, body = String, content_type = "text/event-stream"),
    RefusedStream,
))]
pub(super) async fn events(State(app): State<Arc<App>>) -> Result<impl IntoResponse, Refusal> {
    if *app.phase.borrow() != Phase::Serving {
        return Err(Refusal::Stopping);
    }
    let permit = Arc::clone(&app.streams.0).try_acquire_owned().map_err(|_| Refusal::TooManyStreams)?;
    let mut news = News {
        seconds: app.history.subscribe(),
        phase: app.phase.clone(),
        app,
        state: String::new(),
        queued: VecDeque::new(),
        _permit: permit,
    };
    news.queue_state();
    let events = stream::unfold(news, async |mut news| Some((Ok::<_, Infallible>(news.next().await?), news)));
    // nginx would keep events until it has a page of them.
    let headers = [(CACHE_CONTROL, "no-store"), (HeaderName::from_static("x-accel-buffering"), "no")];
    Ok((headers, Sse::new(events)))
}

/// One reader's stream.
struct News {
    app: Arc<App>,
    seconds: broadcast::Receiver<Second>,
    phase: watch::Receiver<Phase>,
    /// What the reader was told last.
    state: String,
    queued: VecDeque<Event>,
    _permit: OwnedSemaphorePermit,
}

impl News {
    async fn next(&mut self) -> Option<Event> {
        if self.queued.is_empty() {
            let second = tokio::select! {
                second = self.seconds.recv() => second.ok()?,
                _ = self.phase.wait_for(|phase| *phase != Phase::Serving) => return None,
            };
            self.queue_state();
            let second = SecondView::of(&self.app, second);
            self.queued.push_back(Event::default().event("second").data(json(&second)));
        }
        self.queued.pop_front()
    }

    fn queue_state(&mut self) {
        let state = json(&Health::of(&self.app));
        if state != self.state {
            self.queued.push_back(Event::default().event("state").data(&state));
            self.state = state;
        }
    }
}

/// Structs of strings, numbers and flags have nothing that JSON can't hold.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
