//! The samples of `docs/migrate-from-token-bucket-lua.md` run as they stand there.

use std::{fs, path::Path, process::Command};

use sluicegate_tests::{Port, Redis, Service, Tool, repository};

const PAGE: &str = "docs/migrate-from-token-bucket-lua.md";

/// The block of a page whose fence says `kind`, such as `js http`.
///
/// # Panics
/// When there is no such block, or more than one.
pub(crate) fn block(page: &str, kind: &str) -> String {
    let text = fs::read_to_string(repository(page)).unwrap();
    let fence = format!("\n```{kind}\n");
    let mut found = text.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap());
    let block = found.next().unwrap_or_else(|| panic!("{page} has no block {kind}"));
    assert!(found.next().is_none(), "{page} has two blocks {kind}");
    format!("{block}\n")
}

/// What a sample prints, line by line.
fn run(program: &Path, kind: &str, name: &str, environment: &[(&str, &str)]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let sample = directory.path().join(name);
    fs::write(&sample, block(PAGE, kind)).unwrap();
    // Samples name files by their path from the root of the repository.
    let mut command = Command::new(program);
    command.arg(sample).current_dir(repository(".")).envs(environment.iter().copied());
    let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[track_caller]
fn assert_lines(lines: &[String], beginnings: [&str; 3]) {
    let fits = lines.len() == 3 && lines.iter().zip(beginnings).all(|(line, beginning)| line.starts_with(beginning));
    assert!(fits, "{lines:?} instead of {beginnings:?}");
}

async fn check_script(program: &Path, kind: &str, name: &str, environment: &[(&str, &str)]) {
    let redis = Redis::start().await.unwrap();
    let url = redis.url();
    let environment = [environment, &[("REDIS_URL", url.as_str())]].concat();
    let lines = run(program, kind, name, &environment);
    assert_lines(&lines, ["allowed, 1 left", "allowed, 0 left", "denied, again in "]);
    assert_eq!(redis.assert_all_keys_expire(), 1);
}

/// With a service, and where there is none.
async fn check_http(program: &Path, kind: &str, name: &str) {
    let redis = Redis::start().await.unwrap();
    let mut config: serde_json::Value = serde_saphyr::from_str(&block(PAGE, "yaml policy")).unwrap();
    // A slow machine must not turn an answer into a failure.
    config["store"]["timeout"] = "20s".into();
    let service = Service::start(&config.to_string(), &redis.url()).await.unwrap();
    let at = |port: u16| format!("http://127.0.0.1:{port}");
    let ask = |url: &str| run(program, kind, name, &[("SLUICEGATE_URL", url), ("LIMIT_TIMEOUT_MS", "20000")]);
    assert_lines(&ask(&at(service.port())), ["allowed", "allowed", "denied, again in "]);
    let nobody = Port::lease().unwrap();
    assert_lines(&ask(&at(nobody.number())), ["no decision"; 3]);
}

#[tokio::test]
async fn the_script_from_node() {
    let modules = Tool::NodeModules.path().unwrap();
    check_script(Path::new("node"), "js script", "take.cjs", &[("NODE_PATH", modules.to_str().unwrap())]).await;
}

#[tokio::test]
async fn the_script_from_python() {
    check_script(&Tool::Python.path().unwrap(), "python script", "take.py", &[]).await;
}

#[tokio::test]
async fn the_service_from_node() {
    check_http(Path::new("node"), "js http", "take.cjs").await;
}

#[tokio::test]
async fn the_service_from_python() {
    check_http(&Tool::Python.path().unwrap(), "python http", "take.py").await;
}

#[tokio::test]
#[ignore = "needs a JDK: cargo xtask test --all"]
async fn the_service_from_java() {
    check_http(Path::new("java"), "java http", "Take.java").await;
}

#[test]
fn the_rules_fit_the_policy() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, kind: &str| {
        let path = directory.path().join(name);
        fs::write(&path, block(PAGE, kind)).unwrap();
        path
    };
    let mut check = Command::new(Tool::Service.path().unwrap());
    check.arg("check-config").arg(file("sluicegate.yaml", "yaml policy"));
    let output = check.arg("--filter").arg(file("rules.yaml", "yaml rules")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
