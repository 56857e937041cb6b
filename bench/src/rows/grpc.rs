//! Row g: what Envoy's own rate limit filter asks, over gRPC.

use std::time::Duration;

use anyhow::{Result, ensure};
use prost::Message as _;
use sluicegate_tests::{Code, Descriptor, RateLimitClient, RateLimitRequest, Service};

use super::{LIMITADOR, POLICIES, Row, http, without_limitador};
use crate::{
    figure::{Goal, Line},
    load::{H2load, Load},
    peer::Limitador,
    setting::Setting,
    side::{Side, by_turns},
    store::Store,
    tally::Tally,
};

const METHOD: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const SCENARIO: &str = "`ShouldRateLimit`, one hot key";

pub(super) async fn hot(setting: &Setting) -> Result<Vec<Line>> {
    let Some(program) = &setting.limitador else { return Ok(vec![without_limitador(Row::G, SCENARIO)]) };
    let store = Store::start().await?;
    let mut service = Service::start(POLICIES, &store.url()).await?;
    let limitador = Limitador::start(program, &store.url()).await?;
    let descriptor = Descriptor::new(&[("user", "hot")]);
    let question = RateLimitRequest { domain: "bench".to_owned(), descriptors: vec![descriptor], hits_addend: 0 };
    // h2load doesn't see what an answer says, so it is seen here that it is one, and counted there.
    for port in [service.port(), limitador.grpc_port()] {
        let answer = RateLimitClient::new(port)?.send(question.clone(), Duration::from_secs(5)).await?;
        ensure!(answer.overall_code == Code::Ok as i32, "port {port} said {answer:?}");
    }

    let load = |port| Load::H2load(H2load::new(port, METHOD, question.encode_to_vec()));
    let admin = service.admin_port();
    let sides = [
        Side::new("sluicegate", load(service.port()))
            .on(http::pids(&mut service, &store)?)
            .counted_by(Tally::Checks { admin, verdict: "allowed" })
            .counted_by(Tally::Tokens { admin, policy: "api", key: "hot" }),
        Side::new(LIMITADOR, load(limitador.grpc_port()))
            .on([limitador.pid(), store.pid()?])
            .counted_by(Tally::Limitador { http: limitador.http_port() }),
    ];
    let turns = by_turns(setting, &sides).await?;
    let beside = "limitador's gRPC";
    Ok(vec![Line::Figure(http::compared(Row::G, SCENARIO, beside, &turns[0], &turns[1], Goal::AtLeast(1.5)))])
}
