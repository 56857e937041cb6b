//! Joins equal takes: while one is on its way, those that arrive wait and then travel together as one call with a count.
//!
//! A hot bucket so costs one script a round trip however many ask, and nobody waits when nothing is on its way. What is
//! granted is what one by one would have been: the script grants the first of the takes, in the order of their arrival.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sluicegate_lua::{Take, Taken};
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::StoreError;
use crate::metrics::Stages;

/// What makes takes.
pub(super) trait Takes: Send + Sync + 'static {
    /// Makes as many takes as `take` says, before `deadline`.
    fn take(&self, take: &Take, deadline: Instant) -> impl Future<Output = Result<Taken, StoreError>> + Send;
}

/// One caller's share of what came of a call.
#[derive(Clone, Debug)]
pub struct Share {
    /// What each of them took.
    pub take: Arc<Take>,
    /// What came of all takes of the call.
    pub taken: Arc<Taken>,
    /// Which of them was the caller's, from 1.
    pub nth: u64,
    /// How long it waited for the call before to come back.
    pub queued: Duration,
}

/// Joins equal takes.
#[derive(Debug)]
pub(super) struct Joiner<S> {
    store: S,
    stages: Stages,
    /// For each take on its way, who waits for the next call of it.
    waiting: Mutex<HashMap<Arc<Take>, Vec<Waiter>>>,
}

#[derive(Debug)]
struct Waiter {
    answer: oneshot::Sender<Result<Share, StoreError>>,
    since: Instant,
    deadline: Instant,
}

impl<S: Takes> Joiner<S> {
    pub(super) fn new(store: S, stages: Stages) -> Self {
        Self { store, stages, waiting: Mutex::default() }
    }

    pub(super) fn store(&self) -> &S {
        &self.store
    }

    /// Takes once before `deadline`, alone or together with equal takes.
    pub(super) async fn take(self: &Arc<Self>, take: Take, deadline: Instant) -> Result<Share, StoreError> {
        let take = Arc::new(take);
        let waits = match self.lock().entry(Arc::clone(&take)) {
            Entry::Occupied(mut on_its_way) => {
                let (answer, answered) = oneshot::channel();
                on_its_way.get_mut().push(Waiter { answer, since: Instant::now(), deadline });
                Some(answered)
            }
            Entry::Vacant(none) => {
                none.insert(Vec::new());
                None
            }
        };
        if let Some(answered) = waits {
            let answered = timeout_at(deadline, answered).await.map_err(|_| StoreError::Timeout)?;
            return answered.unwrap_or_else(|_| Err(StoreError::Unavailable("the service is stopping".to_owned())));
        }
        // Also when the caller gives up and this is dropped, those that wait are sent for.
        let on_its_way = OnItsWay { joiner: Arc::clone(self), take };
        let taken = self.first(&on_its_way.take, deadline).await?;
        Ok(Share { take: Arc::clone(&on_its_way.take), taken: Arc::new(taken), nth: 1, queued: Duration::ZERO })
    }

    /// Takes once before `deadline`, by itself.
    pub(super) async fn alone(&self, take: Take, deadline: Instant) -> Result<Share, StoreError> {
        let taken = self.first(&take, deadline).await?;
        Ok(Share { take: Arc::new(take), taken: Arc::new(taken), nth: 1, queued: Duration::ZERO })
    }

    /// A take that waits for no other.
    async fn first(&self, take: &Take, deadline: Instant) -> Result<Taken, StoreError> {
        self.unjoined(|store| store.take(take, deadline)).await
    }

    /// Takes that wait for no others, made by `call`.
    pub(super) async fn unjoined<'a, F>(&'a self, call: impl FnOnce(&'a S) -> F) -> Result<Taken, StoreError>
    where
        F: Future<Output = Result<Taken, StoreError>>,
    {
        self.stages.queue(Duration::ZERO);
        let sent = Instant::now();
        let taken = call(&self.store).await;
        self.stages.store(sent.elapsed());
        taken
    }

    /// Sends for those that wait. When that is over, or if it should panic, those that came meanwhile are sent for.
    async fn send_for(on_its_way: OnItsWay<S>, mut waiting: Vec<Waiter>) {
        let OnItsWay { joiner, take } = &on_its_way;
        // Who has given up since is not charged.
        let now = Instant::now();
        waiting.iter().for_each(|waiter| joiner.stages.queue(now - waiter.since));
        waiting.retain(|waiter| waiter.deadline > now && !waiter.answer.is_closed());
        let Some(deadline) = waiting.iter().map(|waiter| waiter.deadline).max() else { return };
        let takes = Take { takes: waiting.len() as u64, ..Take::clone(take) };
        let taken = joiner.store.take(&takes, deadline).await.map(Arc::new);
        let took = now.elapsed();
        for (waiter, nth) in waiting.into_iter().zip(1..) {
            joiner.stages.store(took);
            let queued = now - waiter.since;
            let share = taken.clone().map(|taken| Share { take: Arc::clone(take), taken, nth, queued });
            // A caller that has given up doesn't hear it.
            let _ = waiter.answer.send(share);
        }
    }

    /// Those that came while a call was on its way; when there are none, nothing is on its way any more.
    fn next(&self, take: &Arc<Take>) -> Option<Vec<Waiter>> {
        let mut waiting = self.lock();
        let next = std::mem::take(waiting.get_mut(take)?);
        if next.is_empty() {
            waiting.remove(take);
            return None;
        }
        Some(next)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<Take>, Vec<Waiter>>> {
        // Nothing in there is ever half done.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call. When it is over, those that came meanwhile are sent for.
struct OnItsWay<S: Takes> {
    joiner: Arc<Joiner<S>>,
    take: Arc<Take>,
}

impl<S: Takes> Drop for OnItsWay<S> {
    fn drop(&mut self) {
        if let Some(next) = self.joiner.next(&self.take) {
            // Without a runtime nobody waits any more.
            if let Ok(runtime) = Handle::try_current() {
                let on_its_way = Self { joiner: Arc::clone(&self.joiner), take: Arc::clone(&self.take) };
                runtime.spawn(Joiner::send_for(on_its_way, next));
            }
        }
    }
}

#[cfg(test)]
mod tests;
