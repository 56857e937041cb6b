//! A proxy as the filter sees it: one worker a thread.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use proxy_wasm::types::{Action, Status};
use sluicegate_filter_core::{Field, Headers, pairs};

use crate::plugin::Root;

/// What the filter asked of its proxy, and what the proxy answers.
#[derive(Default)]
pub(super) struct Host {
    pub(super) now_ms: u64,
    pub(super) log: Vec<String>,
    pub(super) added_headers: Vec<String>,
    pub(super) removed_headers: Vec<Vec<u8>>,
    pub(super) filter_state: BTreeMap<String, String>,
    pub(super) metrics: Vec<(String, i64)>,
    /// How often a metric was defined.
    pub(super) defined: usize,
    pub(super) shared: SharedValues,
    /// The context that calls act on.
    pub(super) context: u32,
    pub(super) resumed: Vec<u32>,
    pub(super) reset: Vec<u32>,
    pub(super) calls: Vec<Call>,
    pub(super) responses: Vec<LocalResponse>,
    pub(super) tick_ms: u32,
    pub(super) refuse_calls: bool,
    pub(super) refuse_responses: bool,
    /// Header maps and buffers that exist at this moment, by their kinds in the ABI.
    maps: HashMap<u32, Vec<u8>>,
    buffers: HashMap<u32, Vec<u8>>,
    /// Reads of what doesn't exist at their moment.
    pub(super) bad_reads: usize,
}

/// One callout.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) token: u32,
    pub(super) path: String,
    pub(super) body: String,
    pub(super) timeout_ms: u32,
}

/// A response that the filter made.
#[derive(Clone, Debug)]
pub(super) struct LocalResponse {
    pub(super) status: u32,
    pub(super) details: String,
    pub(super) headers: Vec<u8>,
    pub(super) grpc_status: i32,
}

/// Shared data of all workers of a proxy, as Envoy keeps it: every write has a number of its own; one that expects
/// another number than there is fails, and one that expects 0 never does.
#[derive(Clone, Default)]
pub(super) struct SharedValues(Arc<Mutex<Values>>);

#[derive(Default)]
struct Values {
    writes: u32,
    by_key: HashMap<Vec<u8>, (Vec<u8>, u32)>,
}

impl SharedValues {
    pub(super) fn get(&self, key: &[u8]) -> Option<(Vec<u8>, u32)> {
        self.0.lock().unwrap().by_key.get(key).cloned()
    }

    pub(super) fn set(&self, key: Vec<u8>, value: Vec<u8>, cas: u32) -> bool {
        let Values { writes, by_key } = &mut *self.0.lock().unwrap();
        if by_key.get(&key).is_some_and(|(_, number)| cas != 0 && cas != *number) {
            return false;
        }
        *writes += 1;
        by_key.insert(key, (value, *writes));
        true
    }

    pub(super) fn keys(&self) -> Vec<String> {
        let values = self.0.lock().unwrap();
        values.by_key.keys().map(|key| String::from_utf8(key.clone()).unwrap()).collect()
    }
}

thread_local! {
    // Outlives the thread's contexts, which call it when they are dropped.
    static HOST: &'static RefCell<Host> = Box::leak(Box::default());
}

pub(super) fn with_host<T>(action: impl FnOnce(&mut Host) -> T) -> T {
    HOST.with(|host| action(&mut host.borrow_mut()))
}

// Kinds of the ABI.
const REQUEST_HEADERS: u32 = 0;
const RESPONSE_HEADERS: u32 = 2;
const CALLOUT_HEADERS: u32 = 6;
const CALLOUT_BODY: u32 = 4;
const CONFIGURATION: u32 = 7;

impl Host {
    pub(super) fn buffer(&mut self, kind: u32, start: usize, max_size: usize) -> Result<Vec<u8>, Status> {
        let Some(bytes) = self.buffers.get(&kind) else {
            self.bad_reads += 1;
            return Err(Status::NotFound);
        };
        Ok(bytes.iter().skip(start).take(max_size).copied().collect())
    }

    pub(super) fn header_map(&mut self, kind: u32) -> Result<Vec<u8>, Status> {
        let map = self.maps.get(&kind).cloned();
        self.bad_reads += usize::from(map.is_none());
        map.ok_or(Status::BadArgument)
    }

    #[expect(clippy::unused_self, reason = "as the others")]
    pub(super) fn property(&self, path: &[u8]) -> Result<Vec<u8>, Status> {
        match path {
            b"source\0address" => Ok(b"203.0.113.7:40000".to_vec()),
            b"plugin_name" => Ok(b"limits".to_vec()),
            _ => Err(Status::NotFound),
        }
    }

    pub(super) fn define_metric(&mut self, name: String) -> u32 {
        self.defined += 1;
        let known = self.metrics.iter().position(|(known, _)| *known == name);
        let id = known.unwrap_or_else(|| {
            self.metrics.push((name, 0));
            self.metrics.len() - 1
        });
        u32::try_from(id).unwrap()
    }

    pub(super) fn respond(&mut self, response: LocalResponse) -> u32 {
        if self.refuse_responses {
            return Status::InternalFailure as u32;
        }
        self.responses.push(response);
        0
    }

    pub(super) fn call(&mut self, cluster: &[u8], headers: &[u8], body: Vec<u8>, timeout_ms: u32) -> Option<u32> {
        if self.refuse_calls || cluster != b"sluicegate" {
            return None;
        }
        let path = text(&pairs::decode(headers).unwrap(), ":path").unwrap();
        let token = 100 + u32::try_from(self.calls.len()).unwrap();
        self.calls.push(Call { token, path, body: String::from_utf8(body).unwrap(), timeout_ms });
        Some(token)
    }
}

/// The single value of a header.
pub(super) fn text(headers: &Headers, name: &str) -> Option<String> {
    match headers.get(name) {
        Field::One(value) => Some(String::from_utf8(value.to_vec()).unwrap()),
        Field::Absent | Field::Several => None,
    }
}

// What the proxy calls.
use proxy_wasm_exports::{
    proxy_on_configure, proxy_on_context_create, proxy_on_delete, proxy_on_done, proxy_on_http_call_response,
    proxy_on_log, proxy_on_request_headers, proxy_on_response_headers, proxy_on_tick,
};

#[expect(unsafe_code, reason = "the SDK exports these for the proxy alone")]
mod proxy_wasm_exports {
    use proxy_wasm::types::Action;

    unsafe extern "C" {
        pub(super) safe fn proxy_on_context_create(id: u32, root: u32);
        pub(super) safe fn proxy_on_configure(id: u32, size: usize) -> bool;
        pub(super) safe fn proxy_on_request_headers(id: u32, count: usize, end: bool) -> Action;
        pub(super) safe fn proxy_on_response_headers(id: u32, count: usize, end: bool) -> Action;
        pub(super) safe fn proxy_on_http_call_response(
            id: u32,
            token: u32,
            headers: usize,
            body: usize,
            trailers: usize,
        );
        pub(super) safe fn proxy_on_done(id: u32) -> bool;
        pub(super) safe fn proxy_on_log(id: u32);
        pub(super) safe fn proxy_on_tick(id: u32);
        pub(super) safe fn proxy_on_delete(id: u32);
    }
}

/// One worker, its events named as in a proxy.
pub(super) struct Worker;

impl Worker {
    /// A worker that shares data with others.
    pub(super) fn sharing(shared: &SharedValues) -> Self {
        proxy_wasm::set_root_context(|_| Box::<Root>::default());
        with_host(|host| *host = Host { now_ms: 1_000_000, shared: shared.clone(), ..Host::default() });
        Self
    }

    pub(super) fn new() -> Self {
        Self::sharing(&SharedValues::default())
    }

    /// A root context with this configuration; whether the filter takes it.
    pub(super) fn configure(&self, root: u32, configuration: &serde_json::Value) -> bool {
        proxy_on_context_create(root, 0);
        let bytes = configuration.to_string().into_bytes();
        let size = bytes.len();
        with_host(|host| host.buffers.insert(CONFIGURATION, bytes));
        let taken = proxy_on_configure(root, size);
        with_host(|host| host.buffers.clear());
        taken
    }

    pub(super) fn request(&self, root: u32, id: u32, headers: &[(&str, &str)]) -> Action {
        proxy_on_context_create(id, root);
        self.during(id, &[(REQUEST_HEADERS, headers)], || proxy_on_request_headers(id, headers.len(), true))
    }

    pub(super) fn response(&self, id: u32, status: &str) -> Action {
        self.during(id, &[(RESPONSE_HEADERS, &[(":status", status)])], || proxy_on_response_headers(id, 1, true))
    }

    /// A marked answer to a callout.
    pub(super) fn answer(&self, token: u32, status: &str, body: &str) {
        let headers = [(":status", status), ("x-sluicegate", "0.1.0")];
        with_host(|host| host.buffers.insert(CALLOUT_BODY, body.as_bytes().to_vec()));
        self.during(0, &[(CALLOUT_HEADERS, &headers)], || proxy_on_http_call_response(1, token, 2, body.len(), 0));
        with_host(|host| host.buffers.clear());
    }

    /// An answer that broke off.
    pub(super) fn lost(&self, token: u32) {
        self.during(0, &[], || proxy_on_http_call_response(1, token, 0, 0, 0));
    }

    pub(super) fn end(&self, id: u32) {
        self.during(id, &[], || {
            assert!(proxy_on_done(id));
            proxy_on_log(id);
            proxy_on_delete(id);
        });
    }

    /// The next tick of a root context.
    pub(super) fn tick(&self, root: u32) {
        with_host(|host| host.now_ms += 10);
        self.during(root, &[], || proxy_on_tick(root));
    }

    pub(super) fn call(&self) -> Call {
        with_host(|host| host.calls.last().cloned()).expect("a callout")
    }

    pub(super) fn calls(&self) -> usize {
        with_host(|host| host.calls.len())
    }

    /// The one response of the filter since the last call, with the reason it gives.
    pub(super) fn response_made(&self) -> Option<(LocalResponse, String)> {
        let responses = with_host(|host| std::mem::take(&mut host.responses));
        assert!(responses.len() <= 1, "{responses:?}");
        let response = responses.into_iter().next()?;
        let reason = text(&pairs::decode(&response.headers).unwrap(), "x-sluicegate-reason").unwrap();
        Some((response, reason))
    }

    pub(super) fn metric(&self, name: &str) -> i64 {
        with_host(|host| host.metrics.iter().find(|(known, _)| known == name).map_or(0, |(_, value)| *value))
    }

    /// Runs a callback while these header maps exist.
    fn during<T>(&self, id: u32, maps: &[(u32, &[(&str, &str)])], callback: impl FnOnce() -> T) -> T {
        with_host(|host| {
            host.context = id;
            host.maps = maps.iter().map(|(kind, lines)| (*kind, pairs::encode(lines.iter().copied()))).collect();
        });
        let result = callback();
        with_host(|host| host.maps.clear());
        result
    }
}
