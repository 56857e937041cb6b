//! The commands for a running service, as an operator or a script runs them.

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use sluicegate_tests::{Port, Service, Tool};

const SERVICE: &str = "
store: { url: 'memory://', timeout: 5s }
policies:
  api:
    limits: [{ name: day, capacity: 3, refill: 3, per: 1d, interval: true }, { name: month, quota: 5, every: month }]
    overrides: true
  login:
    limits: [{ name: day, capacity: 1, refill: 1, per: 1d, interval: true }]
    ban: { after: 9, within: 1h, for: 2h }
";

/// An operator's shell, beside a service.
struct Shell(Service);

impl Shell {
    async fn start() -> Self {
        Self(Service::start(SERVICE, "memory://").await.unwrap())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(Tool::Service.path().unwrap());
        command.args(words).env_clear();
        command.env("SLUICEGATE_URL", format!("http://127.0.0.1:{}", self.0.port()));
        command.env("SLUICEGATE_ADMIN_URL", format!("http://127.0.0.1:{}", self.0.admin_port()));
        command
    }

    /// What a command prints that exits with `code`.
    fn run(&self, words: &[&str], code: i32) -> String {
        let output = self.command(words).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        String::from_utf8(if code == 0 || code == 4 { output.stdout } else { output.stderr }).unwrap()
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[words, &["--json"]].concat(), 0)).unwrap()
    }
}

fn with_input(mut command: Command, input: &str) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[tokio::test]
async fn a_token_file_without_a_token_is_told_of() {
    let shell = Shell::start().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let message = format!("sluicegate: --token-file: {path}: its first line, which is the token, is empty\n");
    assert_eq!(shell.run(&["policies", "--token-file", path], 2), message);
}

#[tokio::test]
async fn a_check_exits_with_its_decision() {
    let shell = Shell::start().await;
    assert!(shell.run(&["check", "login", "c"], 0).starts_with("allowed\nLIMIT"));
    let denied = shell.run(&["check", "login", "c"], 4);
    assert!(denied.starts_with("denied\n") && denied.contains("over_limit"), "{denied}");
    assert!(shell.run(&["check", "nobody", "c"], 2).contains("there is no policy \"nobody\""));
    let nobody = shell.run(&["check", "login", "c", "--url", "http://127.0.0.1:1"], 1);
    assert!(nobody.starts_with("sluicegate: http://127.0.0.1:1: "), "{nobody}");
}

#[tokio::test]
async fn health_is_told_by_the_exit_code() {
    let shell = Shell::start().await;
    assert_eq!(shell.run(&["health"], 0), "ok\n");
    assert_eq!(shell.run(&["health", "--ready"], 0), "ready\n");
    let nobody = shell.run(&["health", "--url", "http://127.0.0.1:1"], 1);
    assert!(nobody.starts_with("sluicegate: http://127.0.0.1:1: "), "{nobody}");

    // A port on which nothing listens, for a store.
    let store = Port::lease().unwrap();
    let shell = Shell(Service::start_unready(SERVICE, &format!("redis://127.0.0.1:{}", store.number())).await.unwrap());
    shell.run(&["health"], 0);
    let unready = shell.run(&["health", "--ready"], 1);
    assert!(unready.contains("store"), "{unready}");
}

#[tokio::test]
async fn every_command_does_what_it_says() {
    let shell = Shell::start().await;
    assert!(shell.run(&["policies"], 0).contains("each month (UTC)"));
    shell.run(&["check", "api", "k", "--cost", "3"], 0);
    assert_eq!(shell.json(&["peek", "api", "k"])["limits"][0]["remaining"], 0);
    assert_eq!(shell.run(&["grant", "api", "k", "2"], 0), "k of policy api: day got 2, month got 2\n");
    assert!(shell.run(&["peek", "api", "k"], 0).starts_with("k of policy api\nLIMIT  LEFT  OF"));
    assert_eq!(shell.run(&["reset", "api", "k"], 0), "k of policy api is reset\n");
    assert_eq!(shell.run(&["ban", "login", "k", "--for", "1d"], 0), "k is banned from policy login for 1d\n");
    shell.run(&["check", "login", "k"], 4);
    assert_eq!(shell.run(&["unban", "login", "k"], 0), "k is no longer banned from policy login\n");
    let set = ["override", "set", "api", "k", "--limit", "day:capacity=9", "--limit", "month:quota=7", "--for", "12h"];
    assert!(shell.run(&set, 0).contains("day: capacity 9, 3 per 1d"));
    assert_eq!(shell.json(&["override", "show", "api", "k"])["override"]["limits"]["month"]["quota"], 7);
    assert_eq!(shell.run(&["override", "remove", "api", "k"], 0), "k of policy api has no longer numbers of its own\n");
    assert!(shell.run(&["override", "show", "api", "k"], 2).contains("this subject has no override"));
    let top = shell.run(&["top", "login", "--by", "denials"], 0);
    assert!(top.contains("SUBJECT  COUNT\nk            1\n"), "{top}");
    assert!(shell.run(&["completions", "bash"], 0).contains("_sluicegate"));
}

#[tokio::test]
async fn a_secret_comes_from_standard_input_and_is_shown_as_a_digest() {
    let shell = Shell::start().await;
    let output = with_input(shell.command(&["check", "api", "-", "--secret"]), "abc\n");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let top = shell.json(&["top", "api"]);
    let subject = top["policies"][0]["subjects"][0]["subject"].as_str().unwrap();
    assert_eq!(subject, "#ba7816bf8f01cfea414140de5dae2223");
    assert_eq!(shell.json(&["peek", "api", subject, "--encoded"])["limits"][0]["remaining"], 2);
}

/// The upstream answers on one thread while another waits for the command.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_service_is_told_apart() {
    let upstream = sluicegate_tests::Upstream::start().await.unwrap();
    let shell = Shell::start().await;
    let other = shell.run(&["policies", "--url", &format!("http://127.0.0.1:{}", upstream.port())], 1);
    assert!(other.contains("is not sluicegate"), "{other}");
    assert!(shell.run(&["policies", "--url", "here"], 2).contains("--url: \"here\" is not a service's"));
}
