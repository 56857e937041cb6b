//! `POST /v1/reset`: makes a subject's limits full and lifts its ban.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use serde::{Deserialize, Serialize};
use sluicegate_lua::Reset;
use utoipa::ToSchema;

use super::{AdminError, Key, target::Target};
use crate::{
    api::{App, body, openapi::RefusedAction, respond::Refusal},
    store::StoreError,
};

/// Whom to reset.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResetRequest {
    /// The policy.
    pub(crate) policy: String,
    /// The subject.
    pub(crate) key: Key,
    /// Takes the subject's own numbers away as well.
    #[serde(default, rename = "override")]
    #[schema(default = false)]
    pub(crate) own: bool,
}

/// What was forgotten.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ResetAnswer {
    /// The policy.
    pub(crate) policy: String,
    /// The subject as it stands in the store's keys.
    pub(crate) subject: String,
    /// How many keys there were: one for each limit that wasn't full, the ban or the denials counted, the override.
    pub(crate) removed: u64,
}

/// Makes every limit full and lifts the ban; forgets denials that were counted.
#[utoipa::path(post, path = "/v1/reset", tag = "subjects", security((), ("token" = [])), request_body = ResetRequest,
    responses((status = OK, body = ResetAnswer), RefusedAction))]
pub(super) async fn reset(State(app): State<Arc<App>>, request: Request) -> Result<Json<ResetAnswer>, Refusal> {
    let question: ResetRequest = body::json(request).await?;
    let target = Target::find(&app, &question.policy, &question.key)?;
    let mut call = Reset { policy: &target.policy, keys: target.keys.clone() }.call();
    if question.own {
        call.keys.push(target.keys.overrides());
    }
    let reply = target.run(&app, &call).await.map_err(AdminError::Store)?;
    let removed = Reset::read(&reply).map_err(|error| AdminError::Store(StoreError::from(error)))?;
    Ok(Json(ResetAnswer { policy: target.policy.name().to_string(), subject: target.subject.to_string(), removed }))
}
