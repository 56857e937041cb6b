//! Why an operator's request can't be carried out.

use axum::{extract::rejection::QueryRejection, http::StatusCode};
use sluicegate_lua::{BanNowError, BucketError, OverrideError, QuotaError};
use sluicegate_wire::{EncodedSubjectError, Name};

use crate::store::StoreError;

/// Why a request can't be carried out: the field, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub(in crate::api) enum AdminError {
    #[error("policy: there is no policy {0:?}; GET /v1/policies lists those there are")]
    NoPolicy(String),
    #[error("{}", .0.body_text())]
    Query(QueryRejection),
    #[error("n: must be from 1 to {most}", most = super::top::MAX_SUBJECTS)]
    Most,
    #[error("subject: {0}")]
    Subject(EncodedSubjectError),
    #[error("tokens: is 0; give at least 1")]
    NoTokens,
    #[error("{}", ban_text(.0))]
    Ban(BanNowError),
    #[error("policy: policy {0} does not allow overrides; set overrides: true in its configuration")]
    OverridesOff(Name),
    #[error("this subject has no override")]
    NoOverride,
    #[error("limits: names no limit; give at least one of those that the policy has: {0}")]
    NoLimits(String),
    #[error("limits.{name}: the policy has no such limit; it has: {known}")]
    UnknownLimit { name: String, known: String },
    #[error("limits.{0}.quota: {0} is a bucket; give capacity, refill or per_ms")]
    QuotaOfBucket(Name),
    #[error("limits.{0}: {0} is a quota; give quota alone")]
    BucketOfQuota(Name),
    #[error("limits.{0}: {1}")]
    Bucket(Name, BucketError),
    #[error("limits.{0}.quota: {1}")]
    Quota(Name, QuotaError),
    #[error("end.for_ms: must be from 1 ms to 366 days")]
    ForMs,
    #[error("end.until: is not a time; use RFC 3339, such as 2027-06-30T23:59:59Z")]
    NotATime,
    #[error(
        "end.until: must be within the next 366 days; use \"keep\" for an override that lasts as long as it is used"
    )]
    Until,
    #[error("{0} holds something else than an override; DELETE /v1/override removes it")]
    ForeignOverride(String),
    #[error("limits: {0}")]
    Override(OverrideError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AdminError {
    pub(in crate::api) const fn status(&self) -> StatusCode {
        match self {
            Self::NoPolicy(_) | Self::NoOverride => StatusCode::NOT_FOUND,
            Self::Query(_) => StatusCode::BAD_REQUEST,
            Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            // Well-formed, but not as the policy and the clock stand.
            Self::Ban(BanNowError::NoBan(_))
            | Self::OverridesOff(_)
            | Self::UnknownLimit { .. }
            | Self::QuotaOfBucket(_)
            | Self::BucketOfQuota(_)
            | Self::Bucket(..)
            | Self::Until
            | Self::ForeignOverride(_) => StatusCode::CONFLICT,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }
}

fn ban_text(error: &BanNowError) -> String {
    match error {
        BanNowError::NoBan(_) => format!("policy: {error}"),
        BanNowError::Lasts(_) => format!("for_ms: {error}"),
    }
}
