//! Both listeners against schemathesis, which sends whatever their descriptions allow, and what they forbid.

use std::process::Command;

use sluicegate_tests::{Service, Tool, repository};

const SERVICE: &str = "
store: { url: 'memory://', timeout: 5s }
policies:
  # A name that is tried early.
  '0':
    limits: [{ name: burst, capacity: 10, refill: 10, per: 10s }, { name: month, quota: 1000, every: month }]
    overrides: true
    ban: { after: 3, within: 10m, for: 1h }
  login:
    limits: [{ name: burst, capacity: 3, refill: 3, per: 1m }]
    ban: { after: 3, within: 10m, for: 1h }
";

/// A stream that doesn't end, whose events OpenAPI 3.1 can't describe.
const STREAM: &str = "/v1/events";

/// Each run sends the same requests.
fn run(port: u16, arguments: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(Tool::Python.path().unwrap());
    command.args(["-m", "schemathesis.cli", "--config-file"]).arg(repository("tests/schemathesis.toml"));
    command.arg("run").arg(format!("http://127.0.0.1:{port}/openapi.json"));
    command.args(arguments);
    command.args(["--max-examples", "20", "--seed", "1", "--generation-database", "none", "--no-color"]);
    let output = command.current_dir(&directory).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    // A run that found nothing to send passes as well.
    let cases = text.lines().find_map(|line| line.trim().strip_suffix(" passed")?.split_once(" generated, "));
    assert!(cases.is_some_and(|(generated, passed)| generated == passed && generated != "0"), "{text}");
}

#[tokio::test]
async fn the_data_listener_is_as_described() {
    let service = Service::start(SERVICE, "memory://").await.unwrap();
    run(service.port(), &[]);
}

#[tokio::test]
#[ignore = "some two minutes: cargo xtask test --all"]
async fn the_admin_listener_is_as_described() {
    let service = Service::start(SERVICE, "memory://").await.unwrap();
    run(service.admin_port(), &["--exclude-path", STREAM]);
}
