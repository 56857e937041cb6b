//! What the command line says and exits with.

mod service;

use std::{
    net::TcpListener,
    process::{Child, Output, Stdio},
};

use service::{command, until};

const GOOD: &str = "\
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
store: { url: redis://127.0.0.1:6379 }
policies: { api: { limits: [ { name: a, capacity: 1, refill: 1, per: 1s }, { name: b, capacity: 1, refill: 1, per: 1m } ] } }
";

/// Runs the command in a directory with this `sluicegate.yaml`.
fn run(arguments: &[&str], configuration: &str) -> Output {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("sluicegate.yaml"), configuration).unwrap();
    command().args(arguments).current_dir(&directory).output().unwrap()
}

fn check(arguments: &[&str], configuration: &str, code: i32, stdout: &str, stderr: &str) {
    let output = run(arguments, configuration);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let seen = (output.status.code(), text(&output.stdout), text(&output.stderr));
    assert_eq!(seen, (Some(code), stdout.to_owned(), stderr.to_owned()), "{arguments:?}");
}

#[test]
fn check_config_sums_up_a_good_file() {
    check(
        &["check-config", "sluicegate.yaml"],
        GOOD,
        0,
        "sluicegate.yaml: good (policies: 1, limits: 2, version: 4e3a6324f019)\n",
        "",
    );
}

#[test]
fn check_config_names_each_fault() {
    let faulty = GOOD.replace("per: 1s", "per: 1x").replace("listen: 127.0.0.1:0\n", "listen: here\n");
    let faults = "\
sluicegate.yaml:1:9: listen: not an address to listen on; use IP:port such as 127.0.0.1:8080 or [::]:8080, or unix:/absolute/path
sluicegate.yaml:4:70: policies.api.limits[0].per: needs a number and a unit: ms, s, m, h or d, such as 20ms or 1m
";
    check(&["check-config", "sluicegate.yaml"], &faulty, 3, "", faults);
    check(&["serve"], &faulty, 3, "", &faults.replace("sluicegate.yaml", "./sluicegate.yaml"));
}

#[test]
fn check_config_knows_the_filters_as_well() {
    let filter = |policy: &str| {
        let rule = format!(
            "{{ name: r, limits: [{{ policy: {policy}, key: [client_ip] }}], charge: {{ only_status: [401] }} }}"
        );
        format!("filter: {{ pluginConfig: {{ service: {{ cluster: c }}, rules: [{rule}] }} }}\n")
    };
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("sluicegate.yaml", GOOD.replace("127.0.0.1:0", "0.0.0.0:0").replacen("0.0.0.0:0 }", "127.0.0.1:0 }", 1)),
        ("good.yaml", filter("api")),
        ("bad.yaml", filter("apy")),
        ("faulty.yaml", "lisen: x\n".to_owned()),
    ] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let run = |arguments: &[&str]| {
        let output = command().arg("check-config").args(arguments).current_dir(&directory).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let good = "sluicegate.yaml: good (policies: 1, limits: 2, version: 4e3a6324f019)\n";
    let warning = "rules[0].charge: rule r gives back, which the service refuses, so everything stays charged; set \
                   refunds: true there";
    let error = "rules[0].limits[0].policy: rule r: the service has no policy apy (did you mean api?)";
    assert_eq!(
        run(&["sluicegate.yaml", "--filter", "good.yaml"]),
        (0, format!("{good}good.yaml: good (rules: 1, limits: 1)\n"), format!("good.yaml:1:124: warning: {warning}\n"))
    );
    assert_eq!(
        run(&["sluicegate.yaml", "--filter", "good.yaml", "--filter", "bad.yaml"]),
        (
            3,
            format!("{good}good.yaml: good (rules: 1, limits: 1)\n"),
            format!(
                "good.yaml:1:124: warning: {warning}\nbad.yaml:1:124: warning: {warning}\nbad.yaml:1:90: {error}\n"
            )
        )
    );
    let (code, stdout, stderr) = run(&["sluicegate.yaml", "--filter", "bad.yaml", "--json"]);
    assert_eq!((code, stderr.as_str()), (3, ""));
    let said: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let finding = |severity: &str, column: u64, message: &str| {
        serde_json::json!({
            "severity": severity, "file": "bad.yaml", "line": 1, "column": column, "message": message,
        })
    };
    assert_eq!(
        said,
        serde_json::json!({
            "good": false,
            "policies_version": "4e3a6324f019",
            "findings": [finding("error", 90, error), finding("warning", 124, warning)],
        })
    );
    // Where the service's own file is faulty, the filter's is checked by itself.
    let (code, stdout, stderr) = run(&["faulty.yaml", "--filter", "bad.yaml"]);
    assert_eq!((code, stdout.as_str()), (3, "bad.yaml: good (rules: 1, limits: 1)\n"));
    assert!(stderr.starts_with("faulty.yaml:1:1: lisen: ") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let missing = "other.yaml: can't be read: No such file or directory (os error 2)\n";
    check(&["check-config", "other.yaml"], GOOD, 3, "", &missing.replace(".yaml:", ".yaml:1:1:"));
    check(&["serve", "--config", "other.yaml"], GOOD, 3, "", missing);
}

#[test]
fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = format!("sluicegate: listen: can't listen on {address}: Address already in use (os error 98)\n");
    check(&["serve"], &GOOD.replacen("127.0.0.1:0", &address.to_string(), 1), 1, "", &error);
}

#[test]
fn log_settings_that_mean_nothing_are_named() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("sluicegate.yaml"), GOOD).unwrap();
    for (variable, value) in [("SLUICEGATE_LOG_FORMAT", "xml"), ("SLUICEGATE_LOG", "a=b=c")] {
        let output = command().arg("serve").env(variable, value).current_dir(&directory).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.starts_with(&format!("sluicegate: {variable}: ")), "{stderr}");
    }
}

#[test]
fn a_wrong_command_line_is_2_and_help_names_the_exit_codes() {
    assert_eq!(run(&["serve", "--nonsense"], GOOD).status.code(), Some(2));
    assert_eq!(run(&["check-config"], GOOD).status.code(), Some(2));
    for arguments in [&["--help"][..], &["serve", "--help"], &["check-config", "--help"]] {
        let output = run(arguments, GOOD);
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8_lossy(&output.stdout).contains("Exit codes:"), "{arguments:?}");
    }
    let version = format!("sluicegate {}\n", env!("CARGO_PKG_VERSION"));
    check(&["--version"], GOOD, 0, &version, "");
}

/// A process that ends with its test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn a_service_at_a_socket_is_asked_there() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| format!("unix:{}", directory.path().join(name).display());
    let configuration = GOOD
        .replace("redis://127.0.0.1:6379", "memory://")
        .replacen("127.0.0.1:0", &at("data"), 1)
        .replacen("127.0.0.1:0", &at("admin"), 1);
    std::fs::write(directory.path().join("sluicegate.yaml"), configuration).unwrap();
    let _service = Running(command().arg("serve").current_dir(&directory).stderr(Stdio::null()).spawn().unwrap());
    let ask = |words: &[&str]| command().args(words).output().unwrap();
    let check = ["check", "api", "alice", "--url", &at("data")];
    let allowed =
        until("the service answers", async || Some(ask(&check)).filter(|it| it.status.code() == Some(0))).await;
    assert!(allowed.stdout.starts_with(b"allowed\n"), "{allowed:?}");
    let (denied, peek) = (ask(&check), ask(&["peek", "api", "alice", "--url", &at("admin")]));
    assert_eq!((denied.status.code(), peek.status.code()), (Some(4), Some(0)), "{denied:?} {peek:?}");
    assert!(peek.stdout.starts_with(b"alice of policy api\n"), "{peek:?}");
}
