//! One Redis server: the links to it that calls share, and how a call finds one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use sluicegate_lua::Call;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{
    StoreError,
    breaker::{Breaker, Silence},
    failure::Failure,
    keeper::Keeper,
    link::{Link, Route},
    news::News,
    servers::{Connections, Server},
};

/// How often a call is made again over another link, after proof that nothing ran.
const MAX_LINKS_TRIED: usize = 3;

/// A server, and a few connections to it that are kept by tasks of their own. They end when it is dropped.
#[derive(Debug)]
pub(super) struct Node {
    links: watch::Receiver<Vec<LinkState>>,
    news: Arc<News>,
    next: AtomicUsize,
    /// Of all links together; each has one of its own besides, for when one alone is dead.
    breaker: Breaker,
}

/// What a keeper keeps: one of a node's links.
#[derive(Debug)]
pub(super) struct Place {
    /// Which of the links.
    pub(super) index: usize,
    /// All of the node's.
    pub(super) links: watch::Sender<Vec<LinkState>>,
    /// What the log was told of the node.
    pub(super) news: Arc<News>,
}

/// What became of one connection.
#[derive(Clone, Debug)]
pub(super) enum LinkState {
    /// It is being made, for the first time or right after it was lost: calls wait for it.
    Joining,
    /// Calls use it.
    Up(Arc<Link>),
    /// Calls fail at once, until it is made or answers again.
    Down(StoreError),
}

impl Node {
    /// A server and its keepers, one for each link; calls may take `timeout`. Must be called inside a Tokio runtime.
    pub(super) fn start(links: usize, timeout: Duration, keeper: impl Fn(Place) -> Keeper) -> Self {
        let (state, receiver) = watch::channel(vec![LinkState::Joining; links]);
        let news = Arc::new(News::default());
        for index in 0..links {
            let place = Place { index, links: state.clone(), news: Arc::clone(&news) };
            tokio::spawn(keeper(place).keep());
        }
        Self { links: receiver, news, next: AtomicUsize::new(0), breaker: Breaker::new(timeout) }
    }

    /// A server that can't be connected to at all.
    pub(super) fn never(address: &str, error: StoreError) -> Self {
        let links = watch::channel(vec![LinkState::Down(error)]).1;
        let news = Arc::new(News::default());
        news.found_at(address);
        Self { links, news, next: AtomicUsize::new(0), breaker: Breaker::new(Duration::ZERO) }
    }

    /// Runs a call before `deadline`. When the server is down it fails at once.
    pub(super) async fn run(&self, call: &Call, route: Route, deadline: Instant) -> Result<Vec<i64>, Failure> {
        let mut tried = 0;
        loop {
            let link = self.link(deadline).await?;
            let asked = Instant::now();
            let replied = link.run(call, route, deadline).await;
            tried += 1;
            match &replied {
                Err(Failure::Final(StoreError::Timeout)) => self.unanswered(asked.elapsed()),
                Err(Failure::Elsewhere(_)) if tried < MAX_LINKS_TRIED => continue,
                _ => self.breaker.answered(),
            }
            return replied;
        }
    }

    /// Calls are spread over the links, so a server that is silent on each is found out by all of them together.
    fn unanswered(&self, waited: Duration) {
        if self.breaker.unanswered(waited) == Silence::TooLong {
            for state in self.links.borrow().iter() {
                if let LinkState::Up(link) = state {
                    link.distrust();
                }
            }
        }
    }

    /// A link for one call: the next one that is up, or the first that gets up before `deadline`.
    pub(super) async fn link(&self, deadline: Instant) -> Result<Arc<Link>, StoreError> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let mut waiting: Option<watch::Receiver<Vec<LinkState>>> = None;
        loop {
            let choice = match &mut waiting {
                None => choose(&self.links.borrow(), turn),
                Some(links) => choose(&links.borrow_and_update(), turn),
            };
            match choice {
                Choice::Use(link) => return Ok(link),
                Choice::Fail(error) => return Err(error),
                Choice::Wait => {}
            }
            // A new receiver has seen nothing yet, so it looks once more at once and misses no change.
            let links = waiting.get_or_insert_with(|| self.links.clone());
            match timeout_at(deadline, links.changed()).await {
                Err(_) => return Err(StoreError::Timeout),
                Ok(Err(_)) => return Err(StoreError::Unavailable("the service is stopping".to_owned())),
                Ok(Ok(())) => {}
            }
        }
    }

    /// Whether a script ran lately, or why not.
    pub(super) fn ready(&self) -> Result<(), StoreError> {
        match choose(&self.links.borrow(), 0) {
            Choice::Use(_) => Ok(()),
            Choice::Fail(error) => Err(error),
            Choice::Wait => Err(StoreError::Unavailable("connecting".to_owned())),
        }
    }

    /// How the server is; none while nobody has said where it is.
    pub(super) fn server(&self) -> Option<Server> {
        let mut connections = Connections::default();
        for link in self.links.borrow().iter() {
            *match link {
                LinkState::Up(link) if link.is_good() => &mut connections.up,
                LinkState::Up(_) => &mut connections.silent,
                LinkState::Joining => &mut connections.joining,
                LinkState::Down(StoreError::Silent) => &mut connections.silent,
                LinkState::Down(_) => &mut connections.down,
            } += 1;
        }
        Some(Server { address: self.news.address()?, ready: self.ready(), connections })
    }
}

enum Choice {
    Use(Arc<Link>),
    Wait,
    Fail(StoreError),
}

fn choose(links: &[LinkState], turn: usize) -> Choice {
    let first = turn % links.len().max(1);
    let in_turn = links.iter().cycle().skip(first).take(links.len());
    let mut otherwise = Choice::Wait;
    for state in in_turn {
        match state {
            LinkState::Up(link) if link.is_good() => return Choice::Use(Arc::clone(link)),
            // What one found of the server holds for those that are still being made, too.
            LinkState::Down(error) => otherwise = Choice::Fail(error.clone()),
            // One that is no longer good is about to be looked at by its keeper.
            LinkState::Up(_) | LinkState::Joining => {}
        }
    }
    otherwise
}
