//! `PUT`, `GET` and `DELETE /v1/override`: numbers of a subject's own.
#![expect(unused_qualifications, reason = "utoipa's macro writes them")]

mod end;
mod numbers;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Json,
    extract::{Query, Request, State, rejection::QueryRejection},
};
use serde::{Deserialize, Serialize};
use sluicegate_lua::{Override, Reset, StoredOverride};
use utoipa::{IntoParams, ToSchema};

use super::{AdminError, Key, key::Encoded, policies::date, target::Target};
use crate::{
    api::{
        App, body,
        openapi::{RefusedAction, RefusedQuery},
        respond::Refusal,
    },
    store::StoreError,
};

pub(crate) use end::End;
pub(crate) use numbers::{Numbers, NumbersView};

/// Whose numbers, and which.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverrideRequest {
    /// The policy, which must allow overrides: checks of others look for none.
    pub(crate) policy: String,
    /// The subject.
    pub(crate) key: Key,
    /// Other numbers by the limit's name; limits that are not named keep the policy's, also when those change.
    #[schema(schema_with = numbers::limits_schema)]
    pub(crate) limits: BTreeMap<String, Numbers>,
    /// When they end.
    pub(crate) end: End,
}

/// The override of a subject.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct OverrideAnswer {
    /// The policy.
    pub(crate) policy: String,
    /// The subject as it stands in the store's keys.
    pub(crate) subject: String,
    /// Its numbers.
    #[serde(rename = "override")]
    pub(crate) own: OverrideView,
}

/// Numbers of a subject's own.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Override)]
pub(crate) struct OverrideView {
    /// By the limit's name.
    pub(crate) limits: BTreeMap<String, NumbersView>,
    /// Whether use renews it.
    pub(crate) keep: bool,
    /// How long it lasts yet, in ms; with `keep`, if nobody uses it.
    pub(crate) left_ms: u64,
    /// When that is.
    #[schema(format = DateTime)]
    pub(crate) until: String,
}

/// Whose override.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OverrideQuery {
    /// The policy.
    policy: String,
    /// The subject as it stands in the store's keys, and as PUT, peek and top show it.
    #[param(value_type = Encoded, inline)]
    subject: String,
}

/// What was removed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RemoveAnswer {
    /// The policy.
    pub(crate) policy: String,
    /// The subject as it stands in the store's keys.
    pub(crate) subject: String,
    /// Whether there was an override.
    pub(crate) removed: bool,
}

/// Gives a subject numbers of its own in place of those it had, from the next check of every replica on.
#[utoipa::path(put, path = "/v1/override", tag = "overrides", security((), ("token" = [])),
    request_body = OverrideRequest, responses((status = OK, body = OverrideAnswer), RefusedAction))]
pub(super) async fn put(State(app): State<Arc<App>>, request: Request) -> Result<Json<OverrideAnswer>, Refusal> {
    let question: OverrideRequest = body::json(request).await?;
    let target = Target::find(&app, &question.policy, &question.key)?;
    if !target.policy.overrides() {
        return Err(AdminError::OverridesOff(target.policy.name().clone()).into());
    }
    let rules = numbers::rules(&target.policy, &question.limits)?;
    let lasts_ms = question.end.lasts_ms(SystemTime::now())?;
    let own = Override::new(&target.policy, &rules, lasts_ms).map_err(AdminError::Override)?;
    target.run(&app, &own.call(&target.keys)).await.map_err(AdminError::Store)?;
    let stored = read(&app, &target).await?.ok_or(AdminError::NoOverride)?;
    Ok(Json(OverrideAnswer::of(&target, stored)))
}

/// The numbers that a subject has of its own.
#[utoipa::path(get, path = "/v1/override", tag = "overrides", security((), ("token" = [])), params(OverrideQuery),
    responses((status = OK, body = OverrideAnswer), RefusedQuery))]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    query: Result<Query<OverrideQuery>, QueryRejection>,
) -> Result<Json<OverrideAnswer>, Refusal> {
    let target = find(&app, query)?;
    if !target.policy.overrides() {
        return Err(AdminError::OverridesOff(target.policy.name().clone()).into());
    }
    let stored = read(&app, &target).await?.ok_or(AdminError::NoOverride)?;
    Ok(Json(OverrideAnswer::of(&target, stored)))
}

/// Takes a subject's own numbers away: from the next check on the policy's hold.
#[utoipa::path(delete, path = "/v1/override", tag = "overrides", security((), ("token" = [])), params(OverrideQuery),
    responses((status = OK, body = RemoveAnswer), RefusedQuery))]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    query: Result<Query<OverrideQuery>, QueryRejection>,
) -> Result<Json<RemoveAnswer>, Refusal> {
    let target = find(&app, query)?;
    let reply = target.run(&app, &Reset::override_of(&target.keys)).await.map_err(AdminError::Store)?;
    let removed = Reset::read(&reply).map_err(|error| AdminError::Store(StoreError::from(error)))? > 0;
    Ok(Json(RemoveAnswer { policy: target.policy.name().to_string(), subject: target.subject.to_string(), removed }))
}

/// The override that the store holds.
pub(super) async fn read(app: &App, target: &Target) -> Result<Option<OverrideView>, AdminError> {
    let reply = target.run(app, &StoredOverride::call(&target.keys)).await?;
    let stored = StoredOverride::read(&reply).map_err(|_| AdminError::ForeignOverride(target.keys.overrides()))?;
    Ok(stored.map(OverrideView::of))
}

fn find(app: &App, query: Result<Query<OverrideQuery>, QueryRejection>) -> Result<Target, AdminError> {
    let Query(query) = query.map_err(AdminError::Query)?;
    let subject = query.subject.parse().map_err(AdminError::Subject)?;
    Target::of(app, &query.policy, subject)
}

impl OverrideView {
    fn of(stored: StoredOverride) -> Self {
        let limits = stored.limits.into_iter();
        Self {
            limits: limits.map(|(name, numbers)| (name.to_string(), numbers.into())).collect(),
            keep: stored.keep,
            left_ms: stored.left_ms,
            until: date(SystemTime::now() + Duration::from_millis(stored.left_ms)),
        }
    }
}

impl OverrideAnswer {
    fn of(target: &Target, own: OverrideView) -> Self {
        Self { policy: target.policy.name().to_string(), subject: target.subject.to_string(), own }
    }
}
