//! Makes a store's calls: one for each slot that they touch, made anew when the store's calendar is another.

use std::{sync::Arc, time::Duration};

use sluicegate_lua::{Answer, Call, Give, Given, Keys, Memory, ReplyError, Take, Taken};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::{
    StoreError,
    clock::StoreClock,
    cluster::{Cluster, Slot},
    join::Takes,
    link::Route,
    node::Node,
    servers::Server,
    split::{Split, split_give},
    stats::Stats,
};

/// How long giving back may take: nobody waits for it longer than for the answer.
const GIVE_BACK_TIMEOUT: Duration = Duration::from_secs(1);

/// Makes calls.
#[derive(Clone, Debug)]
pub(super) struct Calls(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    backend: Backend,
    clock: StoreClock,
    stats: Stats,
}

/// What kind of store there is.
#[derive(Debug)]
pub(super) enum Backend {
    /// This process.
    Memory(Memory),
    /// One server at a time.
    Server(Node),
    /// Many servers, each with some of the keys.
    Cluster(Cluster),
}

impl Calls {
    pub(super) fn new(backend: Backend, stats: Stats) -> Self {
        Self(Arc::new(Inner { backend, clock: StoreClock::default(), stats }))
    }

    /// Whether equal takes may travel together. Not in this process, where nothing travels; and not over several slots
    /// with a ban, since a slot that grants more takes than the others would count the rest as denials of its own.
    pub(super) fn may_join(&self, take: &Take) -> bool {
        match &self.0.backend {
            Backend::Memory(_) => false,
            Backend::Server(_) => true,
            Backend::Cluster(_) => {
                let charges = || take.units.iter().flat_map(|unit| &unit.charges);
                let mut slots = charges().map(|charge| Slot::of(&charge.keys));
                let first = slots.next();
                slots.all(|slot| Some(slot) == first) || charges().all(|charge| charge.policy.ban().is_none())
            }
        }
    }

    /// Gives, on a cluster slot by slot.
    pub(super) async fn give(&self, give: &Give, deadline: Instant) -> Result<Given, StoreError> {
        if !matches!(self.0.backend, Backend::Cluster(_)) {
            return self.0.give(give, None, deadline).await;
        }
        let mut giving = JoinSet::new();
        for (slot, part, places) in split_give(give) {
            let inner = Arc::clone(&self.0);
            giving.spawn(async move { (inner.give(&part, Some(slot), deadline).await, places) });
        }
        let mut tokens = vec![Vec::new(); give.gifts.len()];
        let mut failed = None;
        while let Some(Ok((given, places))) = giving.join_next().await {
            match given {
                Ok(given) => {
                    for (place, given) in places.into_iter().zip(given.tokens) {
                        tokens[place] = given;
                    }
                }
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(Given { tokens }), Err)
    }

    /// Makes as many takes as `take` says on the slot of these keys, which has all that it touches.
    pub(super) async fn take_on(&self, take: &Take, keys: &Keys, deadline: Instant) -> Result<Taken, StoreError> {
        self.0.take(take, Some(Slot::of(keys)), deadline).await
    }

    /// Runs a call on the slot of these keys.
    pub(super) async fn run(&self, call: &Call, keys: &Keys, deadline: Instant) -> Result<Vec<i64>, StoreError> {
        self.0.run(call, Some(Slot::of(keys)), deadline).await
    }

    /// Whether a script ran lately, or why not.
    pub(super) fn ready(&self) -> Result<(), StoreError> {
        match &self.0.backend {
            Backend::Memory(_) => Ok(()),
            Backend::Server(node) => node.ready(),
            Backend::Cluster(cluster) => cluster.ready(),
        }
    }

    /// The servers that are known, and how each is.
    pub(super) fn servers(&self) -> Vec<Server> {
        match &self.0.backend {
            Backend::Memory(_) => Vec::new(),
            Backend::Server(node) => node.server().into_iter().collect(),
            Backend::Cluster(cluster) => cluster.servers(),
        }
    }
}

impl Takes for Calls {
    async fn take(&self, take: &Take, deadline: Instant) -> Result<Taken, StoreError> {
        self.0.stats.joined.inc_by(take.takes.saturating_sub(1));
        if !matches!(self.0.backend, Backend::Cluster(_)) {
            return self.0.take(take, None, deadline).await;
        }
        let split = Split::of(take);
        if let [only] = split.parts() {
            return self.0.take(take, Some(only.slot), deadline).await;
        }
        // On a task of its own: a caller that leaves in the middle must not leave some of the slots charged.
        let taking = tokio::spawn(Arc::clone(&self.0).take_parts(split, deadline));
        taking.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the service is stopping".to_owned())))
    }
}

impl Inner {
    /// Takes on each slot at once, and gives back what some granted and others denied.
    async fn take_parts(self: Arc<Self>, split: Split, deadline: Instant) -> Result<Taken, StoreError> {
        let mut taking = JoinSet::new();
        for (at, part) in split.parts().iter().enumerate() {
            let (inner, slot, take) = (Arc::clone(&self), part.slot, part.take.clone());
            taking.spawn(async move { (at, inner.take(&take, Some(slot), deadline).await) });
        }
        let mut answers = vec![Err(StoreError::Timeout); split.parts().len()];
        while let Some(Ok((at, answer))) = taking.join_next().await {
            answers[at] = answer;
        }
        let joined = split.join(answers);
        self.give_back(joined.give_back, deadline).await;
        joined.taken
    }

    /// Gives back what was taken in vain: waited for until `deadline`, so that the answer is true when it goes out, and
    /// done even after that.
    async fn give_back(self: &Arc<Self>, give_back: Vec<(Slot, Give)>, deadline: Instant) {
        let giving: Vec<_> = give_back
            .into_iter()
            .map(|(slot, give)| {
                let inner = Arc::clone(self);
                tokio::spawn(async move {
                    let given = inner.give(&give, Some(slot), Instant::now() + GIVE_BACK_TIMEOUT).await;
                    if let Err(error) = given {
                        inner.stats.give_back_failures.inc();
                        tracing::debug!(%error, "could not give back");
                    }
                })
            })
            .collect();
        for given in giving {
            // Dropping the handle doesn't end the task.
            let _ = timeout_at(deadline, given).await;
        }
    }

    async fn take(&self, take: &Take, slot: Option<Slot>, deadline: Instant) -> Result<Taken, StoreError> {
        self.answered(|now_ms| take.call(now_ms), |reply| take.read(reply), slot, deadline).await
    }

    async fn give(&self, give: &Give, slot: Option<Slot>, deadline: Instant) -> Result<Given, StoreError> {
        self.answered(|now_ms| give.call(now_ms), |reply| give.read(reply), slot, deadline).await
    }

    /// Makes a call for the store's time, and once more when that was not what we thought: then nothing was done.
    async fn answered<T>(
        &self,
        call: impl Fn(u64) -> Call + Send,
        read: impl Fn(&[i64]) -> Result<Answer<T>, ReplyError> + Send,
        slot: Option<Slot>,
        deadline: Instant,
    ) -> Result<T, StoreError> {
        // The second time for what this very server said: a cluster's others may have other clocks.
        let mut guess_ms = self.clock.now_ms();
        for _ in 0..2 {
            let reply = self.run(&call(guess_ms), slot, deadline).await?;
            match read(&reply)? {
                Answer::Done(answer) => return Ok(answer),
                Answer::OtherTime { now_ms } => {
                    self.clock.correct(now_ms);
                    guess_ms = now_ms;
                }
            }
        }
        Err(StoreError::Refused("its clock jumps".into()))
    }

    async fn run(&self, call: &Call, slot: Option<Slot>, deadline: Instant) -> Result<Vec<i64>, StoreError> {
        match (&self.backend, slot) {
            (Backend::Memory(memory), _) => Ok(memory.run(call)?),
            (Backend::Server(node), _) => {
                node.run(call, Route::Owner, deadline).await.map_err(|failure| failure.into_error())
            }
            (Backend::Cluster(cluster), Some(slot)) => cluster.run(call, slot, deadline).await,
            (Backend::Cluster(_), None) => Err(StoreError::Refused("a call for a cluster without a slot".into())),
        }
    }
}
