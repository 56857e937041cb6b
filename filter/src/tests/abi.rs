//! The functions of the ABI, for the linker. Those that the filter calls ask the [`Host`] of their thread; the SDK names
//! the others too, and nothing calls them.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "the proxy's functions are foreign functions: the filter passes memory that is valid for the call"
)]

use std::slice;

use proxy_wasm::types::Status;

use super::host::{Host, LocalResponse, with_host};

/// What a pointer and a size of the filter's mean.
///
/// # Safety
/// The memory is valid for the call.
unsafe fn bytes(data: *const u8, size: usize) -> Vec<u8> {
    // SAFETY: as above; a null pointer comes with size 0.
    if size == 0 { Vec::new() } else { unsafe { slice::from_raw_parts(data, size) }.to_vec() }
}

/// Hands bytes over to the filter, in memory of its allocator: a boxed slice of exactly their size. None are a null
/// pointer.
///
/// # Safety
/// There is room for a pointer and a size.
unsafe fn hand_over(bytes: Vec<u8>, data: *mut *mut u8, size: *mut usize) {
    if bytes.is_empty() {
        return;
    }
    let boxed = Box::leak(bytes.into_boxed_slice());
    // SAFETY: as above.
    unsafe {
        *size = boxed.len();
        *data = boxed.as_mut_ptr();
    }
}

/// Hands over what there is, or refuses as the proxy does.
///
/// # Safety
/// As for [`hand_over`].
unsafe fn answer(found: Result<Vec<u8>, Status>, data: *mut *mut u8, size: *mut usize) -> u32 {
    match found {
        Ok(bytes) => {
            // SAFETY: as above.
            unsafe { hand_over(bytes, data, size) };
            0
        }
        Err(status) => status as u32,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_log(_level: u32, text: *const u8, size: usize) -> u32 {
    let line = String::from_utf8_lossy(&unsafe { bytes(text, size) }).into_owned();
    with_host(|host| host.log.push(line));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_current_time_nanoseconds(time_ns: *mut u64) -> u32 {
    unsafe { *time_ns = with_host(|host| host.now_ms * 1_000_000) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_buffer_bytes(
    kind: u32,
    start: usize,
    max_size: usize,
    data: *mut *mut u8,
    size: *mut usize,
) -> u32 {
    let found = with_host(|host| host.buffer(kind, start, max_size));
    unsafe { answer(found, data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_header_map_pairs(kind: u32, data: *mut *mut u8, size: *mut usize) -> u32 {
    let found = with_host(|host| host.header_map(kind));
    unsafe { answer(found, data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_add_header_map_value(
    _kind: u32,
    name: *const u8,
    name_size: usize,
    value: *const u8,
    value_size: usize,
) -> u32 {
    let text = |data, size| String::from_utf8(unsafe { bytes(data, size) }).unwrap();
    let line = format!("{}: {}", text(name, name_size), text(value, value_size));
    with_host(|host| host.added_headers.push(line));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_remove_header_map_value(_kind: u32, name: *const u8, size: usize) -> u32 {
    let name = unsafe { bytes(name, size) };
    with_host(|host| host.removed_headers.push(name));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_property(
    path: *const u8,
    path_size: usize,
    data: *mut *mut u8,
    size: *mut usize,
) -> u32 {
    let path = unsafe { bytes(path, path_size) };
    unsafe { answer(with_host(|host| host.property(&path)), data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_property(path: *const u8, path_size: usize, value: *const u8, value_size: usize) -> u32 {
    let text = |data, size| String::from_utf8(unsafe { bytes(data, size) }).unwrap();
    let (path, value) = (text(path, path_size), text(value, value_size));
    with_host(|host| host.filter_state.insert(path, value));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_shared_data(
    key: *const u8,
    key_size: usize,
    data: *mut *mut u8,
    size: *mut usize,
    cas: *mut u32,
) -> u32 {
    let key = unsafe { bytes(key, key_size) };
    let Some((value, number)) = with_host(|host| host.shared.clone()).get(&key) else {
        return Status::NotFound as u32;
    };
    unsafe { *cas = number };
    unsafe { answer(Ok(value), data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_shared_data(
    key: *const u8,
    key_size: usize,
    value: *const u8,
    value_size: usize,
    cas: u32,
) -> u32 {
    let (key, value) = unsafe { (bytes(key, key_size), bytes(value, value_size)) };
    let set = with_host(|host| host.shared.clone()).set(key, value, cas);
    if set { 0 } else { Status::CasMismatch as u32 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_define_metric(_kind: u32, name: *const u8, size: usize, id: *mut u32) -> u32 {
    let name = String::from_utf8(unsafe { bytes(name, size) }).unwrap();
    unsafe { *id = with_host(|host| host.define_metric(name)) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn proxy_increment_metric(id: u32, amount: i64) -> u32 {
    with_host(|host| host.metrics[id as usize].1 += amount);
    0
}

#[unsafe(no_mangle)]
extern "C" fn proxy_record_metric(id: u32, _amount: u64) -> u32 {
    with_host(|host| host.metrics[id as usize].1 += 1);
    0
}

#[unsafe(no_mangle)]
extern "C" fn proxy_continue_stream(_kind: u32) -> u32 {
    with_host(|host| host.resumed.push(host.context));
    0
}

#[unsafe(no_mangle)]
extern "C" fn proxy_close_stream(_kind: u32) -> u32 {
    with_host(|host| host.reset.push(host.context));
    0
}

#[unsafe(no_mangle)]
extern "C" fn proxy_set_tick_period_milliseconds(period_ms: u32) -> u32 {
    with_host(|host| host.tick_ms = period_ms);
    0
}

#[unsafe(no_mangle)]
extern "C" fn proxy_set_effective_context(id: u32) -> u32 {
    with_host(|host| host.context = id);
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_send_local_response(
    status: u32,
    details: *const u8,
    details_size: usize,
    _body: *const u8,
    _body_size: usize,
    headers: *const u8,
    headers_size: usize,
    grpc_status: i32,
) -> u32 {
    let details = String::from_utf8(unsafe { bytes(details, details_size) }).unwrap();
    let headers = unsafe { bytes(headers, headers_size) };
    let response = LocalResponse { status, details, headers, grpc_status };
    with_host(|host| host.respond(response))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_http_call(
    cluster: *const u8,
    cluster_size: usize,
    headers: *const u8,
    headers_size: usize,
    body: *const u8,
    body_size: usize,
    _trailers: *const u8,
    _trailers_size: usize,
    timeout_ms: u32,
    token: *mut u32,
) -> u32 {
    let (cluster, headers, body) =
        unsafe { (bytes(cluster, cluster_size), bytes(headers, headers_size), bytes(body, body_size)) };
    match with_host(|host: &mut Host| host.call(&cluster, &headers, body, timeout_ms)) {
        Some(sent) => {
            unsafe { *token = sent };
            0
        }
        None => Status::InternalFailure as u32,
    }
}

/// Defines functions that are there for the linker alone.
macro_rules! never_called {
    ($($name:ident)+) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> u32 {
                Status::InternalFailure as u32
            }
        )+
    };
}

never_called! {
    proxy_get_log_level proxy_set_buffer_bytes proxy_set_header_map_pairs
    proxy_get_header_map_value proxy_replace_header_map_value proxy_register_shared_queue proxy_resolve_shared_queue
    proxy_dequeue_shared_queue proxy_enqueue_shared_queue proxy_grpc_call proxy_grpc_stream proxy_grpc_send
    proxy_grpc_cancel proxy_grpc_close proxy_get_status proxy_call_foreign_function proxy_done proxy_get_metric
}
