//! `POST /v1/grant`: gives a subject tokens.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use serde::{Deserialize, Serialize};
use sluicegate_lua::{Gift, Give};
use sluicegate_wire::Cost;
use utoipa::ToSchema;

use super::{
    AdminError, Key,
    target::{Target, deadline},
};
use crate::api::{App, body, openapi::RefusedAction, respond::Refusal};

/// Whom to give how much.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrantRequest {
    /// The policy.
    pub(crate) policy: String,
    /// The subject.
    pub(crate) key: Key,
    /// Tokens for each of the policy's limits.
    #[schema(value_type = u64, minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    pub(crate) tokens: Cost,
}

/// What was given.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct GrantAnswer {
    /// The policy.
    pub(crate) policy: String,
    /// The subject as it stands in the store's keys.
    pub(crate) subject: String,
    /// Each limit of the policy, in its order.
    pub(crate) limits: Vec<Granted>,
}

/// What one limit got.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Granted {
    /// The limit.
    pub(crate) limit: String,
    /// The tokens it got: fewer than asked where it is full.
    pub(crate) granted: u64,
}

/// Gives tokens to each limit of the policy, up to its capacity. Not to be repeated after a reply that was lost.
#[utoipa::path(post, path = "/v1/grant", tag = "subjects", security((), ("token" = [])), request_body = GrantRequest,
    responses((status = OK, body = GrantAnswer), RefusedAction))]
pub(super) async fn grant(State(app): State<Arc<App>>, request: Request) -> Result<Json<GrantAnswer>, Refusal> {
    let question: GrantRequest = body::json(request).await?;
    if question.tokens == Cost::ZERO {
        return Err(AdminError::NoTokens.into());
    }
    let target = Target::find(&app, &question.policy, &question.key)?;
    let give = Give { gifts: vec![Gift { charge: target.charge(question.tokens), stamps: Vec::new() }] };
    let given = app.limiter.store.give(&give, deadline(&app)).await.map_err(AdminError::Store)?;
    let limits = target.policy.limits().iter().zip(given.tokens.concat());
    Ok(Json(GrantAnswer {
        policy: target.policy.name().to_string(),
        subject: target.subject.to_string(),
        limits: limits.map(|(limit, granted)| Granted { limit: limit.name.to_string(), granted }).collect(),
    }))
}
