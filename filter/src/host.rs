//! Every call to the proxy, and the only unsafe code of the filter.
//!
//! The SDK's own wrappers panic on a status they don't list and on header names that are not UTF-8. These return, and
//! leave the choice to the caller. Only the callout goes through the SDK, which must learn the token to find the
//! stream again when the answer comes; the statuses that Envoy has for it are those that the SDK lists.
#![allow(unsafe_code, reason = "the proxy's functions are foreign functions")]

use std::ptr::null_mut;

use proxy_wasm::{
    hostcalls,
    types::{BufferType, LogLevel, MapType},
};
use sluicegate_filter_core::{
    HeaderValue, Headers, MetricKind, Rejection, Timeout, pairs,
    shared::{Cas, SetError, Stored, Unreadable},
};

// The functions of ABI v0.2.1. A status is a plain number: 0 is ok, and a proxy may have others than the SDK's enum.
#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_log(level: u32, text: *const u8, text_size: usize) -> u32;
    fn proxy_get_current_time_nanoseconds(time_ns: *mut u64) -> u32;
    fn proxy_get_buffer_bytes(kind: u32, start: usize, max_size: usize, data: *mut *mut u8, size: *mut usize) -> u32;
    fn proxy_get_header_map_pairs(kind: u32, data: *mut *mut u8, size: *mut usize) -> u32;
    fn proxy_add_header_map_value(
        kind: u32,
        name: *const u8,
        name_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> u32;
    fn proxy_remove_header_map_value(kind: u32, name: *const u8, name_size: usize) -> u32;
    fn proxy_get_property(path: *const u8, path_size: usize, data: *mut *mut u8, size: *mut usize) -> u32;
    fn proxy_set_property(path: *const u8, path_size: usize, value: *const u8, value_size: usize) -> u32;
    fn proxy_get_shared_data(
        key: *const u8,
        key_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
        cas: *mut u32,
    ) -> u32;
    fn proxy_set_shared_data(key: *const u8, key_size: usize, value: *const u8, value_size: usize, cas: u32) -> u32;
    fn proxy_set_tick_period_milliseconds(period_ms: u32) -> u32;
    fn proxy_define_metric(kind: u32, name: *const u8, name_size: usize, id: *mut u32) -> u32;
    fn proxy_increment_metric(id: u32, amount: i64) -> u32;
    fn proxy_record_metric(id: u32, amount: u64) -> u32;
    fn proxy_continue_stream(kind: u32) -> u32;
    fn proxy_close_stream(kind: u32) -> u32;
    fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_size: usize,
        body: *const u8,
        body_size: usize,
        headers: *const u8,
        headers_size: usize,
        grpc_status: i32,
    ) -> u32;
}

const OK: u32 = 0;
const NOT_FOUND: u32 = 1;
const CAS_MISMATCH: u32 = 8;
/// The stream type of an HTTP request in `proxy_continue_stream` and `proxy_close_stream`.
const HTTP_REQUEST: u32 = 0;

/// Writes a line to the proxy's log.
pub(crate) fn log(level: LogLevel, line: &str) {
    // SAFETY: the proxy reads `line` within the call and keeps no pointer.
    unsafe { proxy_log(level as u32, line.as_ptr(), line.len()) };
}

/// The proxy's clock in ms; 0 when it has none.
pub(crate) fn now_ms() -> u64 {
    let mut time_ns = 0;
    // SAFETY: the proxy writes one u64, for which there is room.
    unsafe { proxy_get_current_time_nanoseconds(&raw mut time_ns) };
    time_ns / 1_000_000
}

/// The plugin configuration; empty when there is none. Valid in `on_configure`.
pub(crate) fn plugin_configuration() -> Vec<u8> {
    buffer(BufferType::PluginConfiguration, usize::MAX)
}

/// The headers of the request. Valid until its response begins.
pub(crate) fn request_headers() -> Headers {
    headers(MapType::HttpRequestHeaders)
}

/// Removes every header of this name from the request.
pub(crate) fn remove_request_header(name: &[u8]) {
    // SAFETY: the proxy reads `name` within the call.
    unsafe { proxy_remove_header_map_value(MapType::HttpRequestHeaders as u32, name.as_ptr(), name.len()) };
}

/// The headers of the response. Valid from its headers on.
pub(crate) fn response_headers() -> Headers {
    headers(MapType::HttpResponseHeaders)
}

/// Adds a header to the response.
pub(crate) fn add_response_header(name: &str, value: &str) {
    let kind = MapType::HttpResponseHeaders as u32;
    // SAFETY: the proxy reads `name` and `value` within the call.
    unsafe { proxy_add_header_map_value(kind, name.as_ptr(), name.len(), value.as_ptr(), value.len()) };
}

/// A property; none when it is unknown or empty.
pub(crate) fn property(path: &[&str]) -> Option<Vec<u8>> {
    let path = path.join("\0");
    returned(|data, size| {
        // SAFETY: the proxy reads `path` within the call and writes one pointer and one size.
        unsafe { proxy_get_property(path.as_ptr(), path.len(), data, size) }
    })
}

/// Sets a value of the request's filter state, under `wasm.` and this name, for the access log.
pub(crate) fn set_property(name: &str, value: &str) {
    // SAFETY: the proxy reads `name` and `value` within the call.
    unsafe { proxy_set_property(name.as_ptr(), name.len(), value.as_ptr(), value.len()) };
}

/// A value that all workers share; none when nobody set it.
pub(crate) fn shared_data(key: &str) -> Result<Option<Stored>, Unreadable> {
    let (mut data, mut size, mut cas) = (null_mut(), 0, 0);
    // SAFETY: the proxy reads `key` within the call and writes one pointer, one size and one number.
    let status = unsafe { proxy_get_shared_data(key.as_ptr(), key.len(), &raw mut data, &raw mut size, &raw mut cas) };
    match status {
        // SAFETY: as for `returned`.
        OK => Ok(Some(Stored { value: unsafe { owned(data, size) }.unwrap_or_default(), cas: Cas(cas) })),
        NOT_FOUND => Ok(None),
        _ => Err(Unreadable),
    }
}

/// Sets a value that all workers share, unless another did since it was seen.
pub(crate) fn set_shared_data(key: &str, value: &[u8], seen: Option<Cas>) -> Result<(), SetError> {
    // 0 would set it whatever is there. A proxy compares the number only where there is a value, and counts writes up
    // from 1, so the last number means "nothing there yet".
    let Cas(cas) = seen.unwrap_or(Cas(u32::MAX));
    // SAFETY: the proxy reads `key` and `value` within the call.
    let status = unsafe { proxy_set_shared_data(key.as_ptr(), key.len(), value.as_ptr(), value.len(), cas) };
    match status {
        OK => Ok(()),
        CAS_MISMATCH => Err(SetError::Mismatch),
        _ => Err(SetError::Refused),
    }
}

/// Has the root context's `on_tick` called so often on this worker.
pub(crate) fn tick_every(period_ms: u64) {
    // SAFETY: no pointer is passed.
    unsafe { proxy_set_tick_period_milliseconds(u32::try_from(period_ms).unwrap_or(u32::MAX)) };
}

/// The proxy's id of a metric; none when it refuses one.
pub(crate) fn define_metric(kind: MetricKind, name: &str) -> Option<u32> {
    let kind = match kind {
        MetricKind::Counter => 0,
        MetricKind::Gauge => 1,
        MetricKind::Histogram => 2,
    };
    let mut id = 0;
    // SAFETY: the proxy reads `name` within the call and writes one number.
    let status = unsafe { proxy_define_metric(kind, name.as_ptr(), name.len(), &raw mut id) };
    (status == OK).then_some(id)
}

/// Changes a counter or a gauge.
pub(crate) fn increment_metric(id: u32, amount: i64) {
    // SAFETY: no pointer is passed.
    unsafe { proxy_increment_metric(id, amount) };
}

/// Adds a value to a histogram.
pub(crate) fn record_metric(id: u32, amount: u64) {
    // SAFETY: no pointer is passed.
    unsafe { proxy_record_metric(id, amount) };
}

/// Sends a callout; none when the proxy refuses it. The answer goes to the context whose callback this is called in.
pub(crate) fn call(cluster: &str, headers: &[(String, HeaderValue)], body: &[u8], timeout: Timeout) -> Option<u32> {
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    hostcalls::dispatch_http_call(cluster, headers, Some(body), Vec::new(), timeout.duration()).ok()
}

/// The headers of a callout's answer. Valid in its callback, and only when there are any.
pub(crate) fn callout_headers() -> Headers {
    headers(MapType::HttpCallResponseHeaders)
}

/// The first `max_bytes` of a callout's answer. Valid in its callback.
pub(crate) fn callout_body(max_bytes: usize) -> Vec<u8> {
    buffer(BufferType::HttpCallResponseBody, max_bytes)
}

/// Lets a held request go on.
pub(crate) fn resume_request() {
    // SAFETY: no pointer is passed.
    unsafe { proxy_continue_stream(HTTP_REQUEST) };
}

/// Resets a request.
pub(crate) fn reset_request() {
    // SAFETY: no pointer is passed.
    unsafe { proxy_close_stream(HTTP_REQUEST) };
}

/// Answers a request; false when the proxy did not take the response. Unlike the SDK's, this call carries response
/// code details for the access log, and the gRPC status beside the HTTP status: the proxy sends the one that fits.
pub(crate) fn reject(rejection: &Rejection) -> bool {
    let headers = pairs::encode(rejection.headers.iter().map(|(name, value)| (name.as_ref(), value.as_str())));
    // SAFETY: the proxy reads details, body and headers within the call.
    let status = unsafe {
        proxy_send_local_response(
            rejection.status.code().into(),
            rejection.details.as_ptr(),
            rejection.details.len(),
            rejection.body.as_ptr(),
            rejection.body.len(),
            headers.as_ptr(),
            headers.len(),
            rejection.grpc_status.code(),
        )
    };
    status == OK
}

fn buffer(kind: BufferType, max_bytes: usize) -> Vec<u8> {
    returned(|data, size| {
        // SAFETY: the proxy writes one pointer and one size.
        unsafe { proxy_get_buffer_bytes(kind as u32, 0, max_bytes, data, size) }
    })
    .unwrap_or_default()
}

fn headers(kind: MapType) -> Headers {
    let bytes = returned(|data, size| {
        // SAFETY: the proxy writes one pointer and one size.
        unsafe { proxy_get_header_map_pairs(kind as u32, data, size) }
    });
    bytes.and_then(|bytes| pairs::decode(&bytes)).unwrap_or_default()
}

/// The bytes that a call of the proxy returns through a pointer and a size; none when it fails or returns none.
fn returned(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Option<Vec<u8>> {
    let mut data = null_mut();
    let mut size = 0;
    let status = call(&raw mut data, &raw mut size);
    if status != OK {
        return None;
    }
    // SAFETY: the proxy returned both together.
    unsafe { owned(data, size) }
}

/// Bytes that the proxy handed over; none for a null pointer.
///
/// # Safety
/// Both are what the proxy returned from one call, not used before.
unsafe fn owned(data: *mut u8, size: usize) -> Option<Vec<u8>> {
    if data.is_null() {
        return None;
    }
    // SAFETY: the proxy took this memory from the SDK's allocator, which makes a boxed slice of exactly `size` bytes,
    // filled them, and hands it over to us alone.
    Some(unsafe { Vec::from_raw_parts(data, size, size) })
}
