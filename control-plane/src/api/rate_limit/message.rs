//! The messages of `envoy/service/ratelimit/v3/rls.proto` and of those it uses, as far as they are read or written here.
//!
//! Keys and values of entries are bytes here, which look the same on the wire as the strings they are there: Envoy sends
//! header values as they came, and one byte that is not UTF-8 must not make an error of a question, which Envoy by
//! default lets pass. No string is read that a client of the proxy can choose.
//!
//! Written by hand since the crates that have them generate the whole of Envoy's API: a minute and a half of compiling.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct RateLimitRequest {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) descriptors: Vec<Descriptor>,
    /// 0 is 1.
    #[prost(uint32, tag = "3")]
    pub(super) hits_addend: u32,
}

/// `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Descriptor {
    #[prost(message, repeated, tag = "1")]
    pub(super) entries: Vec<Entry>,
    #[prost(message, optional, tag = "2")]
    pub(super) limit: Option<RateLimitOverride>,
    /// A `google.protobuf.UInt64Value`: 0 is 0, and missing is the request's.
    #[prost(message, optional, tag = "3")]
    pub(super) hits_addend: Option<u64>,
    #[prost(bool, tag = "4")]
    pub(super) is_negative_hits: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Entry {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
}

/// Whether it is there is all that is asked.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RateLimitOverride {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RateLimitResponse {
    #[prost(enumeration = "Code", tag = "1")]
    pub(super) overall_code: i32,
    /// One for each descriptor, in order.
    #[prost(message, repeated, tag = "2")]
    pub(super) statuses: Vec<DescriptorStatus>,
    #[prost(message, repeated, tag = "3")]
    pub(super) response_headers_to_add: Vec<HeaderValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Code {
    Unknown = 0,
    Ok = 1,
    OverLimit = 2,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DescriptorStatus {
    #[prost(enumeration = "Code", tag = "1")]
    pub(super) code: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) current_limit: Option<RateLimit>,
    #[prost(uint32, tag = "3")]
    pub(super) limit_remaining: u32,
    #[prost(message, optional, tag = "4")]
    pub(super) duration_until_reset: Option<Duration>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RateLimit {
    #[prost(uint32, tag = "1")]
    pub(super) requests_per_unit: u32,
    #[prost(enumeration = "Unit", tag = "2")]
    pub(super) unit: i32,
    #[prost(string, tag = "3")]
    pub(super) name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Unit {
    Unknown = 0,
    Second = 1,
    Minute = 2,
    Hour = 3,
    Day = 4,
    Month = 5,
    Year = 6,
    Week = 7,
}

/// `google.protobuf.Duration`, in whole seconds.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Duration {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
}

/// `envoy.config.core.v3.HeaderValue`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HeaderValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}
