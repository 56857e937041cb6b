//! A service restarted or replaced under load: not one request fails.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use sluicegate_tests::{Answer, Ask, Client, Envoy, Load, Overlay, Process, Redis, Service, Signal, Upstream, until};
use tokio::task::JoinSet;

use crate::verdict::{LONG, SERVICE, assert_counted, plugin};

/// Requests per second, over all kinds of connections.
const RATE: u32 = 150;

/// Checks on connections that are kept, on one of HTTP/2, and on one each.
fn load(service: &Service) -> Load {
    let port = service.port();
    let clients = [Client::new(port), Client::new_http2(port), Client::new_unkept(port)].map(Result::unwrap);
    Load::start(&clients, 6, RATE, |number| Ask::take("wide", format!("user-{}", number % 20), 1))
}

/// Stops a process and waits for its end.
async fn drain(mut process: Process) {
    process.signal(Signal::TERM).unwrap();
    let status = process.exited(Duration::from_secs(20)).await.unwrap();
    assert!(status.success(), "{status}");
    assert!(!process.log().contains("cut off: still busy"), "{}", process.log_tail());
}

/// Replaces the service three times under load.
async fn replace_under_load(mut service: Service) {
    let load = load(&service);
    load.go_on_for(50).await.unwrap();
    for _ in 0..3 {
        let first = service.replace().await.unwrap();
        load.go_on_for(50).await.unwrap();
        drain(first).await;
        load.go_on_for(50).await.unwrap();
    }
    let samples = load.stop().await;
    let failed: Vec<_> = samples.iter().filter(|sample| !sample.is_allowed()).collect();
    assert!(failed.is_empty(), "{} of {}: {failed:?}", failed.len(), samples.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_at_a_shared_port_replaces_another_without_a_failure() {
    let redis = Redis::start().await.unwrap();
    let config = format!("{SERVICE}\nreuse_port: true\n");
    replace_under_load(Service::start(&config, &redis.url()).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_at_passed_sockets_replaces_another_without_a_failure() {
    let redis = Redis::start().await.unwrap();
    replace_under_load(Service::start_at_sockets(SERVICE, &redis.url()).await.unwrap()).await;
}

/// Passed sockets outlive a process: who comes while there is none is answered by the next.
#[tokio::test]
async fn connections_at_passed_sockets_wait_for_the_next_process() {
    let redis = Redis::start().await.unwrap();
    let mut service = Service::start_at_sockets(SERVICE, &redis.url()).await.unwrap();
    service.process().signal(Signal::TERM).unwrap();
    assert!(service.process().exited(Duration::from_secs(20)).await.unwrap().success());
    let client = Client::new_unkept(service.port()).unwrap();
    let early = tokio::spawn(async move { client.take("wide", "early", 1).await });
    service.restart().await.unwrap();
    assert_eq!(early.await.unwrap().unwrap().status, 200);
}

#[tokio::test]
async fn a_port_is_shared_only_where_that_is_said() {
    let redis = Redis::start().await.unwrap();
    let mut service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let error = service.replace().await.unwrap_err().to_string();
    assert!(error.contains("Address already in use"), "{error}");
}

/// Clients of Envoy that ask until stopped.
struct Traffic {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    workers: JoinSet<Vec<Answer>>,
}

impl Traffic {
    fn start(envoy: &Envoy) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut workers = JoinSet::new();
        for _ in 0..4 {
            let client = Client::new(envoy.port()).unwrap();
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            workers.spawn(async move {
                let mut answers = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    answers.push(client.get("/closed/x").await.unwrap());
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                answers
            });
        }
        Self { stop, answered, workers }
    }

    async fn go_on_for(&self, more: u64) {
        let goal = self.answered.load(Ordering::Relaxed) + more;
        until("more answers", Duration::from_secs(60), async || {
            (self.answered.load(Ordering::Relaxed) >= goal).then_some(())
        })
        .await
        .unwrap();
    }

    async fn stop(self) -> Vec<Answer> {
        self.stop.store(true, Ordering::Relaxed);
        self.workers.join_all().await.into_iter().flatten().collect()
    }
}

/// Endpoints on these ports, each asked four times a second whether it is ready.
fn behind_health_checks(ports: [u16; 2]) -> Value {
    let endpoints = ports.map(|port| {
        json!({ "endpoint": { "address": { "socket_address": { "address": "127.0.0.1", "port_value": port } } } })
    });
    json!({
        "load_assignment": { "endpoints": [{ "lb_endpoints": endpoints }] },
        "health_checks": [{
            "timeout": "1s",
            "interval": "0.25s",
            "no_traffic_interval": "0.25s",
            "unhealthy_threshold": 1,
            "healthy_threshold": 1,
            "http_health_check": { "path": "/readyz", "codec_client_type": "HTTP2" },
        }],
    })
}

/// Two replicas behind Envoy, each restarted while the other serves.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_restarted_one_after_the_other_fail_no_decision() {
    let redis = Redis::start().await.unwrap();
    // Longer than it takes Envoy to ask whether a replica is ready.
    let config = SERVICE.replace("drain: 500ms", "drain: 2s");
    let mut replicas = Vec::new();
    for _ in 0..2 {
        replicas.push(Service::start(&config, &redis.url()).await.unwrap());
    }
    let upstream = Upstream::start().await.unwrap();
    let overlay = Overlay::new(replicas[0].port(), upstream.port()).plugin(&plugin(LONG));
    let ports = [replicas[0].port(), replicas[1].port()];
    let envoy = Envoy::start(&overlay.cluster("sluicegate", behind_health_checks(ports))).await.unwrap();
    let healthy = async |count: i64| {
        let name = r#"envoy_cluster_membership_healthy{envoy_cluster_name="sluicegate"}"#;
        until(&format!("{count} healthy replicas"), Duration::from_secs(20), async || {
            (envoy.metric(name).await.unwrap() == count).then_some(())
        })
        .await
        .unwrap();
    };
    healthy(2).await;

    let traffic = Traffic::start(&envoy);
    traffic.go_on_for(100).await;
    for replica in &mut replicas {
        replica.process().signal(Signal::TERM).unwrap();
        let status = replica.process().exited(Duration::from_secs(20)).await.unwrap();
        assert!(status.success(), "{status}");
        healthy(1).await;
        traffic.go_on_for(100).await;
        replica.restart().await.unwrap();
        healthy(2).await;
        traffic.go_on_for(100).await;
    }
    let answers = traffic.stop().await;
    for answer in &answers {
        assert_counted(answer);
    }
    // Both had a share.
    for replica in &replicas {
        let client = Client::new(replica.port()).unwrap();
        assert_eq!(client.get("/readyz").await.unwrap().status, 200);
    }
}

/// One replica at a shared port, replaced behind Envoy.
#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_behind_envoy_fails_no_decision() {
    let redis = Redis::start().await.unwrap();
    let mut service = Service::start_at_sockets(SERVICE, &redis.url()).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let overlay = Overlay::new(service.port(), upstream.port()).plugin(&plugin(LONG));
    let envoy = Envoy::start(&overlay).await.unwrap();
    let traffic = Traffic::start(&envoy);
    traffic.go_on_for(100).await;
    for _ in 0..2 {
        let first = service.replace().await.unwrap();
        traffic.go_on_for(50).await;
        drain(first).await;
        traffic.go_on_for(50).await;
    }
    for answer in &traffic.stop().await {
        assert_counted(answer);
    }
}
