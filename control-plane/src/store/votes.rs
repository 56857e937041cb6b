//! What most of several servers say, when some may be gone and some of yesterday.

use std::{collections::HashMap, hash::Hash};

use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::StoreError;

/// Asks all at once. What more than half of them say is taken as soon as they have said it, else what most of those say
/// that answer before `deadline`. Without any answer, why there is none.
pub(super) async fn most_said<T, F>(questions: impl IntoIterator<Item = F>, deadline: Instant) -> Result<T, StoreError>
where
    T: Clone + Eq + Hash + Send + 'static,
    F: Future<Output = Result<T, StoreError>> + Send + 'static,
{
    let mut asked = JoinSet::new();
    for (at, question) in questions.into_iter().enumerate() {
        asked.spawn(async move { (at, timeout_at(deadline, question).await.unwrap_or(Err(StoreError::Timeout))) });
    }
    let half = asked.len() / 2;
    let mut votes: HashMap<T, usize> = HashMap::new();
    // Of the first in the list, so that it is the same each time.
    let mut why = (usize::MAX, StoreError::Unavailable("there is nobody to ask".to_owned()));
    // A task that didn't end by itself was cut off by the runtime's end.
    while let Some(Ok((at, answered))) = asked.join_next().await {
        match answered {
            Ok(said) => {
                let count = votes.entry(said.clone()).or_default();
                *count += 1;
                if *count > half {
                    return Ok(said);
                }
            }
            Err(error) if at < why.0 => why = (at, error),
            Err(_) => {}
        }
    }
    votes.into_iter().max_by_key(|(_, count)| *count).map(|(said, _)| said).ok_or(why.1)
}

#[cfg(test)]
mod tests {
    use std::{future::pending, time::Duration};

    use super::*;

    async fn check(said: &[Option<&'static str>], expected: Result<&str, StoreError>) {
        let questions = said.iter().map(|said| {
            let said = *said;
            async move {
                match said {
                    Some("gone") => Err(StoreError::Unavailable("gone".to_owned())),
                    Some(said) => Ok(said),
                    None => pending().await,
                }
            }
        });
        let said = most_said(questions.collect::<Vec<_>>(), Instant::now() + Duration::from_millis(500)).await;
        assert_eq!(said, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn the_most_votes_win() {
        let gone = || StoreError::Unavailable("gone".to_owned());
        check(&[Some("a")], Ok("a")).await;
        check(&[Some("a"), Some("b"), Some("a")], Ok("a")).await;
        check(&[Some("gone"), Some("b"), Some("gone")], Ok("b")).await;
        check(&[None, None, Some("b")], Ok("b")).await;
        check(&[Some("gone"), Some("gone")], Err(gone())).await;
        check(&[None, Some("gone")], Err(StoreError::Timeout)).await;
        check(&[None], Err(StoreError::Timeout)).await;
        check(&[], Err(StoreError::Unavailable("there is nobody to ask".to_owned()))).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_majority_waits_for_nobody() {
        let start = Instant::now();
        check(&[None, Some("a"), Some("a")], Ok("a")).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
