//! Whether the process lives, and whether it wants requests.

use std::sync::Arc;

use axum::extract::State;

use super::{App, openapi::RefusedHealth, respond::Refusal};
use crate::{serve::Phase, store::Server};

/// `GET /healthz`: 200 as long as the process answers at all.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = OK, body = String), RefusedHealth))]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: 200 when checks are decided, else 503 with the reason, of each server where there are several.
#[utoipa::path(get, path = "/readyz", tag = "health", responses((status = OK, body = String), RefusedHealth))]
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, Refusal> {
    readiness(&app).map(|()| "ready\n")
}

/// Whether checks are decided, or why not.
pub(super) fn readiness(app: &App) -> Result<(), Refusal> {
    if *app.phase.borrow() != Phase::Serving {
        return Err(Refusal::Stopping);
    }
    app.limiter.ready().map_err(|error| Refusal::NotReady { error, servers: unready(&app.limiter.store.servers()) })
}

/// What each of several servers has to say for itself; of one alone the reason says it all.
fn unready(servers: &[Server]) -> String {
    if servers.len() < 2 {
        return String::new();
    }
    let unready = servers.iter().filter_map(|server| Some((&server.address, server.ready.as_ref().err()?)));
    unready.map(|(address, error)| format!("; {address}: {error}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreError;

    #[test]
    fn each_of_several_servers_is_named_with_its_own_reason() {
        let server =
            |address: &str, ready| Server { address: address.to_owned(), ready, connections: Default::default() };
        let gone = server("a:7000", Err(StoreError::Silent));
        let down = server("b:7000", Err(StoreError::Refused("the cluster is down".to_owned())));
        let good = server("c:7000", Ok(()));
        assert_eq!(unready(std::slice::from_ref(&gone)), "");
        let expected =
            "; a:7000: the store can't be reached: it does not answer; b:7000: the store refused: the cluster is down";
        assert_eq!(unready(&[gone, down, good]), expected);
    }
}
