//! `POST /v1/peek`: what a subject has left, without taking.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use serde::{Deserialize, Serialize};
use sluicegate_lua::{CheckTaken, Level, Take, Unit};
use sluicegate_wire::Cost;
use utoipa::ToSchema;

use super::{
    AdminError, Key,
    overrides::{self, OverrideView},
    target::{Target, deadline},
};
use crate::{
    api::{App, body, openapi::RefusedAction, respond::Refusal},
    store::StoreError,
};

/// Whom to look at.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeekRequest {
    /// The policy.
    pub(crate) policy: String,
    /// The subject.
    pub(crate) key: Key,
}

/// What a subject has.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PeekAnswer {
    /// The policy.
    pub(crate) policy: String,
    /// The subject as it stands in the store's keys.
    pub(crate) subject: String,
    /// Each limit of the policy, in its order, with the numbers that are in force for this subject.
    pub(crate) limits: Vec<LevelView>,
    /// The ban, where the policy has one.
    #[schema(required)]
    pub(crate) ban: Option<BanState>,
    /// The subject's own numbers, where it has any.
    #[serde(rename = "override")]
    #[schema(required)]
    pub(crate) own: Option<OverrideView>,
}

/// What one limit holds.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Level)]
pub(crate) struct LevelView {
    /// The limit.
    pub(crate) limit: String,
    /// The most tokens it holds for this subject.
    pub(crate) capacity: u64,
    /// Whole tokens left.
    pub(crate) remaining: u64,
    /// The time to one more token, in ms; 0 when full.
    pub(crate) next_ms: u64,
    /// The time until full, in ms.
    pub(crate) full_ms: u64,
    /// The time from empty to full, or the length of a quota's current window, in ms.
    pub(crate) window_ms: u64,
}

/// How far a subject is from a ban, or from the end of one.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct BanState {
    /// Whether it is banned.
    pub(crate) banned: bool,
    /// How long yet, in ms.
    pub(crate) left_ms: u64,
    /// Denials counted towards the next one.
    pub(crate) denials: u64,
    /// The denials it takes.
    pub(crate) after: u64,
}

/// What a subject has left, without taking: its limits, ban and override.
#[utoipa::path(post, path = "/v1/peek", tag = "subjects", security((), ("token" = [])), request_body = PeekRequest,
    responses((status = OK, body = PeekAnswer), RefusedAction))]
pub(super) async fn peek(State(app): State<Arc<App>>, request: Request) -> Result<Json<PeekAnswer>, Refusal> {
    let question: PeekRequest = body::json(request).await?;
    let target = Target::find(&app, &question.policy, &question.key)?;
    let found = look(&app, &target).await.map_err(AdminError::Store)?;
    let own = if target.policy.overrides() { overrides::read(&app, &target).await? } else { None };
    Ok(Json(answer(&target, &found, own)))
}

async fn look(app: &App, target: &Target) -> Result<CheckTaken, StoreError> {
    let unit = Unit { charges: vec![target.charge(Cost::ZERO)], enforced: true };
    let share = app.limiter.store.take(Take { takes: 1, units: vec![unit] }, deadline(app)).await?;
    let check = share.taken.units.first().and_then(|unit| unit.checks.first());
    check.cloned().ok_or_else(|| StoreError::Refused("its reply has no check".to_owned()))
}

fn answer(target: &Target, found: &CheckTaken, own: Option<OverrideView>) -> PeekAnswer {
    let view = |(limit, level): (&sluicegate_lua::Limit, &Level)| {
        let judged = level.judge(found.now_ms, Cost::ZERO, 1, 1);
        LevelView {
            limit: limit.name.to_string(),
            capacity: level.capacity(),
            remaining: judged.remaining,
            next_ms: judged.next_ms,
            full_ms: judged.full_ms,
            window_ms: level.window_ms(),
        }
    };
    let ban = target.policy.ban().map(|ban| BanState {
        banned: found.ban_left_ms > 0,
        left_ms: found.ban_left_ms,
        denials: found.denials,
        after: ban.after(),
    });
    PeekAnswer {
        policy: target.policy.name().to_string(),
        subject: target.subject.to_string(),
        limits: target.policy.limits().iter().zip(&found.levels).map(view).collect(),
        ban,
        own,
    }
}
