//! What the log is told of a server: one line for each change, not for each attempt or link.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{StoreError, node::LinkState, origin::Origin};

/// The least time between two lines: a server that comes and goes many times a second is told of once a second, with
/// what it is then. Keepers tell again and again, so the last state is always told in the end.
const SPACING: Duration = Duration::from_secs(1);

/// What the log was told of one server so far.
#[derive(Debug, Default)]
pub(super) struct News(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    state: Option<Result<(), StoreError>>,
    at: Option<Instant>,
    survey: String,
    /// Where the server was last found.
    address: Option<String>,
}

impl News {
    /// The state of a server's links. While a lost link is being replaced there is nothing to tell yet.
    pub(super) fn tell(&self, links: &[LinkState], origin: &Origin) {
        let Some(state) = summary(links) else { return };
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Down for other words of the same kind (refused, then reset, then refused) is no news.
        let kind = |state: &Result<(), StoreError>| state.as_ref().err().map(StoreError::reason);
        if told.state.as_ref().is_some_and(|before| kind(before) == kind(&state)) {
            return;
        }
        if told.at.is_some_and(|at| at.elapsed() < SPACING) {
            return;
        }
        told.at = Some(Instant::now());
        match &state {
            Ok(()) => tracing::info!(store = %origin, "store connected"),
            Err(error) => tracing::warn!(store = %origin, %error, "store down, trying on"),
        }
        told.state = Some(state);
    }

    /// Where the server is now.
    pub(super) fn found_at(&self, address: &str) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.address.as_deref() != Some(address) {
            told.address = Some(address.to_owned());
        }
    }

    /// Where the server was last found; none when nobody has said yet.
    pub(super) fn address(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).address.clone()
    }

    /// Whether a survey says what no survey said before.
    pub(super) fn is_new(&self, survey: &str) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = told.survey != survey;
        if new {
            survey.clone_into(&mut told.survey);
        }
        new
    }
}

/// A server as callers see it: up with any link, else down when one found it so.
fn summary(links: &[LinkState]) -> Option<Result<(), StoreError>> {
    if links.iter().any(|state| matches!(state, LinkState::Up(_))) {
        return Some(Ok(()));
    }
    links.iter().find_map(|state| match state {
        LinkState::Down(error) => Some(Err(error.clone())),
        LinkState::Up(_) | LinkState::Joining => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_is_down_speaks_for_those_that_are_being_made() {
        let down = |why: &str| LinkState::Down(StoreError::Unavailable(why.to_owned()));
        let why = |why: &str| Some(Err(StoreError::Unavailable(why.to_owned())));
        assert_eq!(summary(&[LinkState::Joining]), None);
        assert_eq!(summary(&[down("a"), LinkState::Joining]), why("a"));
        assert_eq!(summary(&[LinkState::Joining, down("a")]), why("a"));
        assert_eq!(summary(&[down("a"), down("b")]), why("a"));
    }

    /// What a log line would say, or nothing.
    fn told(news: &News, links: &[LinkState]) -> Option<bool> {
        let before = news.0.lock().unwrap().at;
        news.tell(links, &Origin::nowhere());
        let told = news.0.lock().unwrap();
        (told.at != before).then(|| told.state.as_ref().unwrap().is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_comes_and_goes_is_told_of_once_a_second() {
        let news = News::default();
        let down = |error| [LinkState::Down(error)];
        let slow = || StoreError::Slow(Duration::from_millis(20));
        assert_eq!(told(&news, &down(StoreError::Timeout)), Some(false), "the first at once");
        for error in [slow(), StoreError::Timeout, slow()] {
            assert_eq!(told(&news, &down(error)), None);
        }
        tokio::time::advance(SPACING).await;
        assert_eq!(told(&news, &down(slow())), Some(false), "what it is then");
        tokio::time::advance(SPACING).await;
        assert_eq!(told(&news, &down(slow())), None, "no change");
        assert_eq!(told(&news, &[LinkState::Joining]), None);
    }

    #[test]
    fn a_survey_is_news_once() {
        let news = News::default();
        assert!(news.is_new("master") && !news.is_new("master") && news.is_new("replica"));
    }
}
