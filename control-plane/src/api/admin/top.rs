//! `GET /v1/top`: who takes most, or is denied most.
#![expect(unused_qualifications, reason = "utoipa's macro writes them")]

use std::{sync::Arc, time::Instant};

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::{Deserialize, Serialize};
use sluicegate_wire::Name;
use utoipa::{IntoParams, ToSchema};

use super::{AdminError, target};
use crate::{
    api::{App, openapi::RefusedQuery, respond::Refusal},
    top::{Outcome, Ranking},
};

/// The most subjects of a policy in one answer.
pub(super) const MAX_SUBJECTS: usize = 100;

/// What to rank.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TopQuery {
    /// The policy; without, each of them.
    policy: Option<String>,
    /// By what to rank.
    #[serde(default)]
    #[param(inline, required = false)]
    by: By,
    /// How many subjects of each policy.
    #[serde(default = "ten")]
    #[param(minimum = 1, maximum = 100, default = 10, required = false)]
    n: usize,
}

/// What subjects are ranked by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    /// Checks that took tokens.
    #[default]
    Takes,
    /// Checks that were denied.
    Denials,
}

/// Who comes most often at this replica. What a proxy answers from its own memory isn't counted.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct TopAnswer {
    /// What subjects are ranked by.
    pub(crate) by: By,
    /// The policies asked about, by name.
    pub(crate) policies: Vec<TopPolicy>,
}

/// The subjects of one policy.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct TopPolicy {
    /// The policy.
    pub(crate) policy: String,
    /// The time up to now in which checks were counted, in ms: 5 to 10 minutes, or less after the start.
    pub(crate) window_ms: u64,
    /// How many were counted in all.
    pub(crate) total: u64,
    /// How often any subject that is not listed here because it had no counter came at most: at most a 128th of the
    /// total.
    pub(crate) uncounted_at_most: u64,
    /// The subjects, the most frequent first.
    pub(crate) subjects: Vec<TopSubject>,
}

/// One subject.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct TopSubject {
    /// The subject as it stands in the store's keys: secrets are digests. `{"encoded": …}` makes a key of it.
    pub(crate) subject: String,
    /// How many checks of it there were at most, …
    pub(crate) count: u64,
    /// … and how many fewer there may have been; mostly 0.
    pub(crate) error: u64,
}

/// The subjects that take most or are denied most, of the last minutes.
#[utoipa::path(get, path = "/v1/top", tag = "subjects", security((), ("token" = [])), params(TopQuery), responses(
    (status = OK, body = TopAnswer),
    RefusedQuery,
))]
pub(super) async fn top(
    State(app): State<Arc<App>>,
    query: Result<Query<TopQuery>, QueryRejection>,
) -> Result<Json<TopAnswer>, Refusal> {
    let Query(query) = query.map_err(AdminError::Query)?;
    if !(1..=MAX_SUBJECTS).contains(&query.n) {
        return Err(AdminError::Most.into());
    }
    let mut names: Vec<Name> = match &query.policy {
        Some(policy) => vec![target::policy(&app, policy)?.name().clone()],
        None => app.limiter.policies.current().iter().map(|policy| policy.name().clone()).collect(),
    };
    names.sort_unstable();
    let outcome = match query.by {
        By::Takes => Outcome::Taken,
        By::Denials => Outcome::Denied,
    };
    let now = Instant::now();
    let ranked = |name: &Name| TopPolicy::of(name, app.limiter.top.ranking(name.as_str(), outcome, query.n, now));
    Ok(Json(TopAnswer { by: query.by, policies: names.iter().map(ranked).collect() }))
}

impl TopPolicy {
    fn of(policy: &Name, ranking: Ranking) -> Self {
        let subjects = ranking.subjects.into_iter();
        Self {
            policy: policy.to_string(),
            window_ms: u64::try_from(ranking.window.as_millis()).unwrap_or(u64::MAX),
            total: ranking.total,
            uncounted_at_most: ranking.least,
            subjects: subjects
                .map(|ranked| TopSubject { subject: ranked.subject, count: ranked.count, error: ranked.error })
                .collect(),
        }
    }
}

const fn ten() -> usize {
    10
}
