//! Containers that stop, and networks that part them.

use std::time::Duration;

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::Value;
use sluicegate_tests::{Answer, Client, Stage as _, Story, until};
use sluicegate_wire::header;

use crate::project::{Project, docker, step};

/// How long a change may take to be noticed everywhere.
const NOTICED: Duration = Duration::from_secs(30);

/// The demo's story, told by the containers. The service itself answers at its ports too, and Prometheus sees all parts.
pub(crate) async fn the_story_comes_out(project: &mut Project) -> Result<()> {
    step("telling the demo's story");
    let story = Story::tell(project).await?;
    eprintln!("{}", story.render());
    ensure!(story.all_ok(), "the story came out otherwise");

    let answer = project.data()?.take("login", "203.0.113.7", 1).await?;
    ensure!(answer.status == 200 && answer.headers.contains_key(header::MARKER), "{answer:?}");
    let page = project.admin()?.get("/").await?;
    ensure!(page.status == 200, "the dashboard: {page:?}");
    let asked = project.admin()?.get("/v1/policies").await?;
    ensure!(asked.status == 401, "the admin listener answers without its token: {asked:?}");
    let top = project.compose(&["exec", "-T", "sluicegate-1", "/usr/local/bin/sluicegate", "policies"])?;
    ensure!(top.contains("login-account"), "{top}");

    let prometheus = project.prometheus()?;
    until("Prometheus to see both replicas and Envoy", NOTICED, async || {
        let up = prometheus.get("/api/v1/query?query=up").await.ok()?.json();
        let up = up["data"]["result"].as_array()?;
        (up.len() == 3 && up.iter().all(|series| series["value"][1] == "1")).then_some(())
    })
    .await
}

/// Requests go on being counted while one replica stops, is away, and comes back.
pub(crate) async fn a_replica_that_stops_is_not_missed(project: &mut Project) -> Result<()> {
    step("stopping a replica");
    let client = project.client()?;
    until_counted(&client).await?;
    project.compose(&["stop", "sluicegate-2"])?;
    let answers = burst(&client, 200).await?;
    let counted = answers.iter().filter(|answer| answer.headers.contains_key(header::RATE_LIMIT)).count();
    eprintln!("compose: with one replica, {counted} of {} requests were counted", answers.len());
    // The rest are late answers of a busy machine, which the route lets pass.
    ensure!(answers.iter().all(|answer| answer.status == 200) && counted * 10 >= answers.len() * 9, "{answers:#?}");
    project.compose(&["start", "sluicegate-2"])?;
    project.until_healthy(&["sluicegate-2"]).await
}

/// Redis runs, but nothing reaches it.
pub(crate) async fn a_store_out_of_reach_is_each_routes_choice(project: &mut Project) -> Result<()> {
    step("parting the service and Redis");
    let redis = project.container("redis")?;
    let network = project.network("store");
    docker(&["network", "disconnect", &network, &redis])?;
    until_failing(project).await?;
    let service = project.data()?;
    // Silence is taken for an outage only after several calls.
    until("the service to be unready", NOTICED, async || {
        service.get("/readyz").await.is_ok_and(|readiness| readiness.status == 503).then_some(())
    })
    .await?;
    docker(&["network", "connect", "--alias", "redis", &network, &redis])?;
    until_counted(&project.client()?).await
}

/// Both replicas are gone.
pub(crate) async fn no_service_is_each_routes_choice(project: &mut Project) -> Result<()> {
    step("stopping both replicas");
    project.compose(&["stop", "sluicegate-1", "sluicegate-2"])?;
    until_failing(project).await?;
    project.compose(&["start", "sluicegate-1", "sluicegate-2"])?;
    until_counted(&project.client()?).await
}

/// Nobody crashed meanwhile, or said that something was wrong with the setting.
pub(crate) fn everything_was_quiet(project: &Project) -> Result<()> {
    step("reading the logs");
    for service in ["envoy", "sluicegate-1", "sluicegate-2", "upstream"] {
        let logs = project.compose(&["logs", "--no-color", service])?;
        for word in ["panicked", "Wasm VM failed", "Function failed", "critical", "ERROR"] {
            ensure!(!logs.contains(word), "{service}'s log has {word:?}:\n{logs}");
        }
        let restarts = &project.inspect(service)?["RestartCount"];
        ensure!(*restarts == Value::from(0), "{service} was restarted {restarts} times");
    }
    Ok(())
}

/// Waits until the open route lets pass what can't be counted and the closed one rejects it.
async fn until_failing(project: &Project) -> Result<()> {
    let client = project.client()?;
    until("each route's failure verdict", NOTICED, async || {
        let open = api(&client, "outage").await.ok()?;
        let closed = client.send(Method::POST, "/login", &[]).await.ok()?;
        let open = open.status == 200 && open.reason() == Some("failure_open");
        let closed = closed.status == 429 && closed.reason() == Some("failure_closed");
        (open && closed).then_some(())
    })
    .await
}

/// Waits for requests to be counted again, one after the other.
async fn until_counted(client: &Client) -> Result<()> {
    let mut in_a_row = 0;
    until("requests to be counted", NOTICED, async || {
        let counted = api(client, &format!("back-{in_a_row}")).await.is_ok_and(|answer| {
            answer.status == 200 && answer.reason().is_none() && answer.headers.contains_key(header::RATE_LIMIT)
        });
        in_a_row = if counted { in_a_row + 1 } else { 0 };
        (in_a_row == 10).then_some(())
    })
    .await
}

/// Requests of as many users.
async fn burst(client: &Client, requests: usize) -> Result<Vec<Answer>> {
    let mut answers = Vec::new();
    for user in 0..requests {
        answers.push(api(client, &format!("user-{user}")).await?);
    }
    Ok(answers)
}

async fn api(client: &Client, key: &str) -> Result<Answer> {
    client.send(Method::GET, "/api/hello", &[("x-api-key", key)]).await
}
