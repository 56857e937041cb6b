//! `POST /v1/ban` and `/v1/unban`: denies a subject for a time, whatever it has left.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use serde::{Deserialize, Serialize};
use sluicegate_lua::{BanNow, MAX_FILL_MS, Reset};
use utoipa::ToSchema;

use super::{AdminError, Key, target::Target, whole};
use crate::{
    api::{App, body, openapi::RefusedAction, respond::Refusal},
    store::StoreError,
};

/// Whom to ban.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BanRequest {
    /// The policy, which must have a ban: checks of others look for none.
    pub(crate) policy: String,
    /// The subject.
    pub(crate) key: Key,
    /// How long, in ms, at most 366 days; without, as long as the policy bans.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::optional")]
    #[schema(minimum = 1, maximum = 31_622_400_000_u64)]
    pub(crate) for_ms: Option<u64>,
}

const _: () = assert!(MAX_FILL_MS == 31_622_400_000, "the schema says so");

/// The ban as it was imposed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct BanAnswer {
    /// The policy.
    pub(crate) policy: String,
    /// The subject as it stands in the store's keys.
    pub(crate) subject: String,
    /// How long it lasts, in ms.
    pub(crate) for_ms: u64,
}

/// Bans a subject from now on, at the next check of every replica. A ban that lasts already is replaced.
#[utoipa::path(post, path = "/v1/ban", tag = "subjects", security((), ("token" = [])), request_body = BanRequest,
    responses((status = OK, body = BanAnswer), RefusedAction))]
pub(super) async fn ban(State(app): State<Arc<App>>, request: Request) -> Result<Json<BanAnswer>, Refusal> {
    let question: BanRequest = body::json(request).await?;
    let target = Target::find(&app, &question.policy, &question.key)?;
    let ban = BanNow::new(&target.policy, question.for_ms).map_err(AdminError::Ban)?;
    target.run(&app, &ban.call(&target.keys)).await.map_err(AdminError::Store)?;
    let policy = target.policy.name().to_string();
    Ok(Json(BanAnswer { policy, subject: target.subject.to_string(), for_ms: ban.for_ms() }))
}

/// Whose ban to lift.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnbanRequest {
    /// The policy.
    pub(crate) policy: String,
    /// The subject.
    pub(crate) key: Key,
}

/// What was lifted.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct UnbanAnswer {
    /// The policy.
    pub(crate) policy: String,
    /// The subject as it stands in the store's keys.
    pub(crate) subject: String,
    /// Whether there was a ban, or denials counted towards one.
    pub(crate) lifted: bool,
}

/// Lifts a subject's ban, whoever imposed it, and forgets the denials counted towards one. Its limits stay as they are.
#[utoipa::path(post, path = "/v1/unban", tag = "subjects", security((), ("token" = [])), request_body = UnbanRequest,
    responses((status = OK, body = UnbanAnswer), RefusedAction))]
pub(super) async fn unban(State(app): State<Arc<App>>, request: Request) -> Result<Json<UnbanAnswer>, Refusal> {
    let question: UnbanRequest = body::json(request).await?;
    let target = Target::find(&app, &question.policy, &question.key)?;
    let reply = target.run(&app, &BanNow::lift(&target.keys)).await.map_err(AdminError::Store)?;
    let lifted = Reset::read(&reply).map_err(|error| AdminError::Store(StoreError::from(error)))? > 0;
    Ok(Json(UnbanAnswer { policy: target.policy.name().to_string(), subject: target.subject.to_string(), lifted }))
}
