//! A store that takes as long as the test lets it.

use std::time::Duration;

use sluicegate_lua::UnitTaken;
use tokio::sync::{mpsc, oneshot};

use super::*;

const SOON: Duration = Duration::from_millis(20);

/// A call that the store was sent, and how the test answers it.
struct Sent {
    takes: u64,
    answer: oneshot::Sender<Result<Taken, StoreError>>,
}

#[derive(Debug)]
struct Slow(mpsc::UnboundedSender<Sent>);

impl Takes for Slow {
    async fn take(&self, take: &Take, deadline: Instant) -> Result<Taken, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Sent { takes: take.takes, answer }).unwrap();
        timeout_at(deadline, answered).await.map_err(|_| StoreError::Timeout)?.unwrap()
    }
}

fn joiner() -> (Arc<Joiner<Slow>>, mpsc::UnboundedReceiver<Sent>) {
    let (sender, sent) = mpsc::unbounded_channel();
    (Arc::new(Joiner::new(Slow(sender), Stages::default())), sent)
}

/// Takes that differ in nothing but `other`.
fn take(other: usize) -> Take {
    Take { takes: 1, units: vec![Default::default(); other] }
}

fn granted(takes: u64, granted: u64) -> Taken {
    Taken { takes, units: vec![UnitTaken { granted, checks: Vec::new() }] }
}

/// A caller; it has asked when this returns.
async fn ask(joiner: &Arc<Joiner<Slow>>, other: usize) -> tokio::task::JoinHandle<Result<(u64, u64), StoreError>> {
    let joiner = Arc::clone(joiner);
    let asking = tokio::spawn(async move {
        let share = joiner.take(take(other), Instant::now() + SOON).await?;
        Ok((share.taken.takes, share.nth))
    });
    tokio::task::yield_now().await;
    asking
}

#[tokio::test(start_paused = true)]
async fn those_that_come_while_one_is_on_its_way_travel_together_in_order() {
    let (joiner, mut sent) = joiner();
    let first = ask(&joiner, 0).await;
    let call = sent.recv().await.unwrap();
    assert_eq!(call.takes, 1);
    let second = ask(&joiner, 0).await;
    let third = ask(&joiner, 0).await;
    let other = ask(&joiner, 1).await;
    let of_other = sent.recv().await.unwrap();
    assert_eq!(of_other.takes, 1, "another take waits for nobody");
    assert!(sent.try_recv().is_err());
    call.answer.send(Ok(granted(1, 1))).unwrap();
    assert_eq!(first.await.unwrap(), Ok((1, 1)));
    let call = sent.recv().await.unwrap();
    assert_eq!(call.takes, 2);
    let fourth = ask(&joiner, 0).await;
    call.answer.send(Ok(granted(2, 2))).unwrap();
    assert_eq!([second.await.unwrap(), third.await.unwrap()], [Ok((2, 1)), Ok((2, 2))]);
    sent.recv().await.unwrap().answer.send(Ok(granted(1, 0))).unwrap();
    of_other.answer.send(Ok(granted(1, 1))).unwrap();
    assert_eq!([fourth.await.unwrap(), other.await.unwrap()], [Ok((1, 1)), Ok((1, 1))]);
    // Nothing is on its way any more: the next is sent at once, and nothing is kept.
    tokio::task::yield_now().await;
    assert!(joiner.lock().is_empty());
    let last = ask(&joiner, 0).await;
    sent.recv().await.unwrap().answer.send(Err(StoreError::Overloaded)).unwrap();
    assert_eq!(last.await.unwrap(), Err(StoreError::Overloaded));
}

#[tokio::test(start_paused = true)]
async fn everyone_joined_hears_of_a_failure() {
    let (joiner, mut sent) = joiner();
    let first = ask(&joiner, 0).await;
    let waiting = [ask(&joiner, 0).await, ask(&joiner, 0).await];
    let refused = StoreError::Refused("no".to_owned());
    sent.recv().await.unwrap().answer.send(Err(refused.clone())).unwrap();
    assert_eq!(first.await.unwrap(), Err(refused.clone()));
    sent.recv().await.unwrap().answer.send(Err(refused.clone())).unwrap();
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap(), Err(refused.clone()));
    }
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_first_leaves_the_others_a_call() {
    let (joiner, mut sent) = joiner();
    let first = ask(&joiner, 0).await;
    let second = ask(&joiner, 0).await;
    let _lost = sent.recv().await.unwrap();
    first.abort();
    let call = sent.recv().await.unwrap();
    assert_eq!(call.takes, 1);
    call.answer.send(Ok(granted(1, 1))).unwrap();
    assert_eq!(second.await.unwrap(), Ok((1, 1)));
}

#[tokio::test(start_paused = true)]
async fn who_has_given_up_is_not_charged() {
    let (joiner, mut sent) = joiner();
    let _first = ask(&joiner, 0).await;
    let gone = ask(&joiner, 0).await;
    tokio::time::advance(SOON / 2).await;
    let patient = ask(&joiner, 0).await;
    gone.abort();
    // The first runs into its deadline.
    let _silent = sent.recv().await.unwrap();
    let call = sent.recv().await.unwrap();
    assert_eq!(call.takes, 1, "only the patient one is left");
    call.answer.send(Ok(granted(1, 1))).unwrap();
    assert_eq!(patient.await.unwrap(), Ok((1, 1)));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_past_the_own_deadline() {
    let (joiner, mut sent) = joiner();
    let start = Instant::now();
    let first = ask(&joiner, 0).await;
    tokio::time::advance(SOON / 2).await;
    let second = ask(&joiner, 0).await;
    assert_eq!(first.await.unwrap(), Err(StoreError::Timeout));
    assert_eq!(start.elapsed(), SOON);
    assert_eq!(second.await.unwrap(), Err(StoreError::Timeout));
    assert_eq!(start.elapsed(), SOON * 3 / 2);
    // Nothing is left behind once the calls are over, though no answer ever came.
    drop(sent.recv().await);
    tokio::time::advance(SOON).await;
    tokio::task::yield_now().await;
    assert!(joiner.lock().is_empty());
}

/// A store that fails as none should leaves nobody waiting for ever.
#[tokio::test(start_paused = true)]
async fn a_panic_ends_the_calls_it_is_in_and_no_others() {
    let (joiner, mut sent) = joiner();
    let first = ask(&joiner, 0).await;
    let second = ask(&joiner, 0).await;
    sent.recv().await.unwrap().answer.send(Ok(granted(1, 1))).unwrap();
    assert_eq!(first.await.unwrap(), Ok((1, 1)));
    let call = sent.recv().await.unwrap();
    let third = ask(&joiner, 0).await;
    // Without an answer the store panics.
    drop(call);
    assert!(matches!(second.await.unwrap(), Err(StoreError::Unavailable(_))));
    sent.recv().await.unwrap().answer.send(Ok(granted(1, 1))).unwrap();
    assert_eq!(third.await.unwrap(), Ok((1, 1)));
}
