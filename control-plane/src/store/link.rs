//! One connection to a Redis server, which many calls share, and what is known of its health.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, Pipeline, PushInfo, PushKind, RedisError, ServerErrorKind,
    aio::MultiplexedConnection, cmd,
};
use sluicegate_lua::{Call, SCRIPTS};
use tokio::{
    sync::{Mutex, watch},
    time::{Instant, timeout_at},
};

use super::{
    StoreError,
    breaker::{Breaker, Silence},
    failure::Failure,
};

/// A connection that many calls share.
#[derive(Debug)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    breaker: Breaker,
    health: watch::Sender<Health>,
    /// How often the scripts were loaded over this connection.
    loads: AtomicU64,
    /// Held while they are.
    loading: Mutex<()>,
}

/// Whether calls may use a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// They may.
    Good,
    /// Several waited in vain one after another.
    Silent,
    /// It has to be replaced.
    Lost(StoreError),
}

/// Whether a call follows an ASK redirect: a server that is getting a slot takes calls for it only when asked so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Owner,
    Asking,
}

impl Link {
    /// Connects and loads the scripts before `deadline`, so that the first calls find them. `patience` is how long a
    /// call waits for a server that does answer.
    pub(super) async fn open(client: &Client, patience: Duration, deadline: Instant) -> Result<Self, StoreError> {
        let (health, _) = watch::channel(Health::Good);
        // Told by the client's own task as soon as the server closes, calls or not.
        let closed = health.clone();
        let on_push = move |push: PushInfo| {
            if push.kind == PushKind::Disconnection {
                report(&closed, Health::Lost(StoreError::Unavailable("the connection broke".to_owned())));
            }
            Ok::<(), ()>(())
        };
        // Every wait of ours has a deadline of its own, so the client's defaults are switched off.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_push_sender(on_push);
        let open = async {
            let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
            let breaker = Breaker::new(patience);
            let link = Self { connection, breaker, health, loads: AtomicU64::new(0), loading: Mutex::new(()) };
            link.load(0).await?;
            Ok(link)
        };
        timeout_at(deadline, open).await.map_err(|_| StoreError::Timeout)?.map_err(|error: RedisError| error.into())
    }

    /// Runs one call before `deadline`. A reply after that is dropped.
    pub(super) async fn run(&self, call: &Call, route: Route, deadline: Instant) -> Result<Vec<i64>, Failure> {
        let asked = Instant::now();
        let Ok(replied) = timeout_at(deadline, self.attempt(call, route)).await else {
            if self.breaker.unanswered(asked.elapsed()) == Silence::TooLong {
                self.distrust();
            }
            return Err(Failure::Final(StoreError::Timeout));
        };
        self.breaker.answered();
        replied.map_err(|error| self.failure(error))
    }

    /// Runs any other command before `deadline`.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd, deadline: Instant) -> Result<T, StoreError> {
        let mut connection = self.connection.clone();
        let replied = timeout_at(deadline, command.query_async(&mut connection)).await;
        replied.map_err(|_| StoreError::Timeout)?.map_err(|error| self.failure(error).into_error())
    }

    /// Whether calls may use it.
    pub(super) fn is_good(&self) -> bool {
        *self.health.borrow() == Health::Good
    }

    /// The server doesn't answer, be it on other links: a probe must, before calls use this one again.
    pub(super) fn distrust(&self) {
        report(&self.health, Health::Silent);
    }

    /// Waits until calls may no longer use the link, and says why.
    pub(super) async fn unusable(&self) -> Health {
        let mut health = self.health.subscribe();
        // The sender lives as long as the link does.
        health.wait_for(|health| *health != Health::Good).await.map_or(Health::Good, |health| health.clone())
    }

    /// The server answers again.
    pub(super) fn recovered(&self) {
        self.breaker.answered();
        self.health.send_if_modified(|health| {
            let silent = *health == Health::Silent;
            if silent {
                *health = Health::Good;
            }
            silent
        });
    }

    /// By hash; then, when the server has lost its scripts, after loading them; then, when it lost them again, with the
    /// text. Each time the server proved that nothing ran.
    async fn attempt(&self, call: &Call, route: Route) -> Result<Vec<i64>, RedisError> {
        let loads = self.loads.load(Ordering::Acquire);
        let by_hash = call.by_hash();
        let mut replied = self.send(&by_hash, route).await;
        if has_no_script(&replied) {
            self.load(loads).await?;
            replied = self.send(&by_hash, route).await;
        }
        if has_no_script(&replied) {
            replied = self.send(&call.by_text(), route).await;
        }
        replied
    }

    async fn send(&self, command: &Cmd, route: Route) -> Result<Vec<i64>, RedisError> {
        let mut connection = self.connection.clone();
        match route {
            Route::Owner => command.query_async(&mut connection).await,
            // One pipeline, since ASKING holds for the connection's very next command.
            Route::Asking => {
                let mut both = Pipeline::with_capacity(2);
                both.add_command(cmd("ASKING")).ignore().add_command(command.clone());
                let (reply,) = both.query_async(&mut connection).await.map_err(of_last)?;
                Ok(reply)
            }
        }
    }

    /// Loads the scripts unless somebody has since `seen`: of many calls that find them gone, one does it.
    async fn load(&self, seen: u64) -> Result<(), RedisError> {
        let _loading = self.loading.lock().await;
        if self.loads.load(Ordering::Acquire) == seen {
            let mut all = Pipeline::with_capacity(SCRIPTS.len());
            for script in SCRIPTS {
                all.add_command(script.load()).ignore();
            }
            let mut connection = self.connection.clone();
            all.query_async::<()>(&mut connection).await.map_err(of_last)?;
            self.loads.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    fn failure(&self, error: RedisError) -> Failure {
        let gone = error.is_io_error() || error.is_connection_dropped() || error.is_unrecoverable_error();
        let failure = Failure::from(error);
        match &failure {
            Failure::Elsewhere(error) => report(&self.health, Health::Lost(error.clone())),
            Failure::Final(error) if gone => report(&self.health, Health::Lost(error.clone())),
            _ => {}
        }
        failure
    }
}

/// Things only get worse here; the keeper makes them better.
fn report(health: &watch::Sender<Health>, new: Health) {
    health.send_if_modified(|health| {
        let worse = matches!((&*health, &new), (Health::Good, _) | (Health::Silent, Health::Lost(_)));
        if worse {
            *health = new;
        }
        worse
    });
}

fn has_no_script<T>(replied: &Result<T, RedisError>) -> bool {
    replied.as_ref().is_err_and(|error| error.kind() == ServerErrorKind::NoScript.into())
}

/// A pipeline's error wraps those of its commands: the last is the one that matters here.
fn of_last(error: RedisError) -> RedisError {
    match error.clone().into_server_errors() {
        Some(errors) => errors.last().map_or(error, |(_, last)| last.clone().into()),
        None => error,
    }
}
