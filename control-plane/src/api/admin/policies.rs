//! `GET /v1/policies`: what is limited.

use std::{sync::Arc, time::SystemTime};

use axum::{Json, extract::State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sluicegate_lua::{Ban, Limit, Policy, Refill, Rule};
use utoipa::ToSchema;

use crate::{
    api::{App, openapi::RefusedLook},
    policies::{Attempt, ReloadState},
};

/// The policies in use, by name.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PoliciesAnswer {
    /// Tells this set from one that limits otherwise; replicas that agree have the same.
    pub(crate) version: String,
    /// What became of reading the configuration.
    pub(crate) reload: Reload,
    /// The policies, by name.
    pub(crate) policies: Vec<PolicyView>,
}

/// What became of reading the configuration.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Reload {
    /// Since when these policies are in use.
    #[schema(format = DateTime)]
    loaded_at: String,
    /// When the file was read last.
    #[schema(format = DateTime)]
    last_attempt_at: String,
    /// What was wrong with it then, each fault on a line of its own.
    #[schema(required)]
    pub(crate) last_error: Option<String>,
    /// When it was good last.
    #[schema(format = DateTime)]
    last_success_at: String,
    /// Attempts that succeeded, without the start.
    succeeded: u64,
    /// Attempts that failed.
    failed: u64,
    /// Fields whose new values wait for a restart.
    pub(crate) needs_restart: Vec<String>,
}

/// A policy.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Policy)]
pub(crate) struct PolicyView {
    /// Its name.
    pub(crate) name: String,
    /// Its limits: a check takes from all of them or from none.
    pub(crate) limits: Vec<LimitView>,
    /// When it bans.
    #[schema(required)]
    pub(crate) ban: Option<BanView>,
    /// Whether subjects may have numbers of their own.
    pub(crate) overrides: bool,
}

/// A limit.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schema(as = Limit)]
pub(crate) enum LimitView {
    /// A token bucket.
    Bucket {
        /// Its name.
        name: String,
        /// The most tokens it holds.
        capacity: u64,
        /// The tokens it gains in each `per_ms`, reduced where it refills all the time.
        refill: u64,
        /// The period of the refill, in ms.
        per_ms: u64,
        /// Whether it refills once a period rather than all the time.
        interval: bool,
    },
    /// A calendar quota.
    Quota {
        /// Its name.
        name: String,
        /// The tokens of each window.
        quota: u64,
        /// The window: minute, hour, day, week or month.
        every: String,
        /// The time zone whose calendar counts.
        time_zone: String,
    },
}

/// When a policy bans.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Ban)]
pub(crate) struct BanView {
    /// The denials it takes, …
    pub(crate) after: u64,
    /// … within this time of the first, in ms.
    pub(crate) within_ms: u64,
    /// How long it lasts, in ms.
    pub(crate) for_ms: u64,
}

/// The policies in use, and what became of the attempts to read them anew.
#[utoipa::path(get, path = "/v1/policies", tag = "policies", security((), ("token" = [])), responses(
    (status = OK, body = PoliciesAnswer),
    RefusedLook,
))]
pub(super) async fn policies(State(app): State<Arc<App>>) -> Json<PoliciesAnswer> {
    let policies = app.limiter.policies.current();
    let mut views: Vec<_> = policies.iter().map(|policy| PolicyView::of(policy)).collect();
    views.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let reload = Reload::of(app.limiter.policies.state());
    Json(PoliciesAnswer { version: policies.version().to_string(), reload, policies: views })
}

impl Reload {
    pub(super) fn of(state: ReloadState) -> Self {
        let (at, last_error) = match state.last_attempt {
            Attempt::Ok { at } => (at, None),
            Attempt::Failed { at, error } => (at, Some(error)),
        };
        Self {
            loaded_at: date(state.loaded_at),
            last_attempt_at: date(at),
            last_error,
            last_success_at: date(state.last_success_at),
            succeeded: state.succeeded,
            failed: state.failed,
            needs_restart: state.needs_restart,
        }
    }
}

impl PolicyView {
    fn of(policy: &Policy) -> Self {
        let ban = policy.ban().map(|ban: &Ban| BanView {
            after: ban.after(),
            within_ms: ban.within_ms(),
            for_ms: ban.for_ms(),
        });
        let limits = policy.limits().iter().map(LimitView::of).collect();
        Self { name: policy.name().to_string(), limits, ban, overrides: policy.overrides() }
    }
}

impl LimitView {
    fn of(limit: &Limit) -> Self {
        let name = limit.name.to_string();
        match &limit.rule {
            Rule::Bucket(bucket) => Self::Bucket {
                name,
                capacity: bucket.capacity(),
                refill: bucket.refill(),
                per_ms: bucket.per_ms(),
                interval: bucket.mode() == Refill::Interval,
            },
            Rule::Quota(quota) => Self::Quota {
                name,
                quota: quota.quota(),
                every: quota.every().as_str().to_owned(),
                time_zone: quota.zone().to_owned(),
            },
        }
    }
}

/// A time in RFC 3339, in UTC.
pub(super) fn date(time: SystemTime) -> String {
    // Beyond the year 9999 a clock is wrong anyway.
    Timestamp::try_from(time).unwrap_or(Timestamp::MAX).to_string()
}
