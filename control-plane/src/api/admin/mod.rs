//! What operators ask and do: how the service is doing, policies, one subject's limits, ban and override, and who comes
//! most often.
//!
//! Bodies are strict, unlike those of checks: a field that an operator misspelled is an error and not the default.

mod ban;
mod error;
mod events;
mod grant;
mod key;
mod overrides;
mod overview;
mod peek;
mod policies;
mod reset;
mod target;
mod top;
mod whole;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use super::App;

pub(in crate::api) use error::AdminError;
pub use events::EventStreams;

pub(crate) use ban::{BanAnswer, BanRequest, UnbanAnswer, UnbanRequest};
pub(crate) use grant::{GrantAnswer, GrantRequest};
pub(crate) use key::Key;
pub(crate) use overrides::{End, Numbers, NumbersView, OverrideAnswer, OverrideRequest, OverrideView, RemoveAnswer};
pub(crate) use peek::{BanState, PeekAnswer, PeekRequest};
pub(crate) use policies::{LimitView, PoliciesAnswer, PolicyView};
pub(crate) use reset::{ResetAnswer, ResetRequest};
pub(crate) use top::TopAnswer;

/// The routes, each with its description.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(overview::overview))
        .routes(routes!(events::events))
        .routes(routes!(policies::policies))
        .routes(routes!(peek::peek))
        .routes(routes!(reset::reset))
        .routes(routes!(grant::grant))
        .routes(routes!(ban::ban))
        .routes(routes!(ban::unban))
        .routes(routes!(overrides::put, overrides::get, overrides::remove))
        .routes(routes!(top::top))
}
