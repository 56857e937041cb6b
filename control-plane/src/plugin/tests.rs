use super::*;

const SERVICE: &str = "
listen: 0.0.0.0:1
store: { url: memory:// }
key_pepper: salt
policies:
  login: { limits: [{ name: burst, capacity: 5, refill: 5, per: 1m }] }
  api: { limits: [{ name: burst, capacity: 10, refill: 10, per: 1s }, { name: day, quota: 100, every: day }] }
  api-gold: { limits: [{ name: burst, capacity: 10, refill: 10, per: 1s }], overrides: true }
";

fn service(text: &str) -> Config {
    Config::parse("s.yaml", text, &|_| None).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Checks a file in which `^` marks the place of each finding, in order, and is not part of it.
fn check(marked: &str, errors: &[&str], warnings: &[&str]) {
    let report = check_text("p.yaml", &marked.replace('^', ""), Some(&service(SERVICE)));
    let mut places = Vec::new();
    for (line, text) in (1..).zip(marked.lines()) {
        let columns = text.match_indices('^').enumerate().map(|(marks, (column, _))| column - marks + 1);
        places.extend(columns.map(|column| format!("p.yaml:{line}:{column}: ")));
    }
    let said = report.errors.iter().chain(&report.warnings).map(ToString::to_string).collect::<Vec<_>>();
    let expected = places.iter().zip(errors.iter().chain(warnings)).map(|(place, reason)| format!("{place}{reason}"));
    assert_eq!(said, expected.collect::<Vec<_>>(), "{marked}");
    assert_eq!((report.errors.len(), report.warnings.len()), (errors.len(), warnings.len()), "{marked}");
}

/// Checks a plugin whose one rule, `r`, has these fields.
fn check_rule(marked: &str, errors: &[&str], warnings: &[&str]) {
    check(&format!("service: {{ cluster: c }}\nrules:\n  - name: r\n    {marked}\n"), errors, warnings);
}

#[test]
fn policies_that_the_service_lacks_are_errors_with_a_hint() {
    check_rule("limits: [{ policy: login, key: [client_ip] }]", &[], &[]);
    check_rule(
        "limits: [{ policy: login, key: [client_ip] }, { policy: ^logn, key: [client_ip] }]",
        &["rules[0].limits[1].policy: rule r: the service has no policy logn (did you mean login?)"],
        &[],
    );
    check_rule(
        "limits: [{ policy: ^other, key: [client_ip] }]",
        &["rules[0].limits[0].policy: rule r: the service has no policy other"],
        &[],
    );
    check_rule(
        "limits: [{ policy: { from: host, map: { a.b: ^api_gold, c: api }, default: ^apii }, key: [host] }]",
        &[
            "rules[0].limits[0].policy.map.a.b: rule r: the service has no policy api_gold (did you mean api-gold?)",
            "rules[0].limits[0].policy.default: rule r: the service has no policy apii (did you mean api?)",
        ],
        &[],
    );
}

#[test]
fn what_the_filter_refuses_is_said_in_its_words_with_place_and_hint() {
    check("^{}", &["configuration: missing field `service`"], &[]);
    check_rule(
        "limits: []\n    ^on_falure:\n      closed: {}",
        &["rules[0].on_falure: unknown field `on_falure`, expected one of `name`, `match`, `limits`, `continue`, \
           `timeout`, `on_failure`, `shadow`, `reject`, `charge` (did you mean on_failure?)"],
        &[],
    );
    check_rule(
        "limits: []\n    timeout: ^1h",
        &["rules[0].timeout: a timeout is a whole number of ms or s, from 1ms to 60s, such as 25ms or 1s"],
        &[],
    );
    check_rule(
        "match: { path: { exact: /, trailing_slash: ^ignor } }\n    limits: []",
        &["rules[0].match.path.trailing_slash: use one of `strict`, `ignore` (did you mean ignore?)"],
        &[],
    );
}

#[test]
fn what_is_no_yaml_has_its_place() {
    check("service: { cluster: c }\nrules: []\n^rules: []\n", &["rules is there twice; keep one"], &[]);
    check("rules: ^[\n", &["unclosed bracket '['"], &[]);
}

#[test]
fn what_works_otherwise_than_expected_is_a_warning() {
    check_rule(
        "limits: [{ policy: login, key: [client_ip] }]\n    charge: ^{ only_status: [401] }",
        &[],
        &[
            "rules[0].charge: rule r gives back, which the service refuses, so everything stays charged; set refunds: true \
           there",
        ],
    );
    check_rule(
        "limits: [{ policy: ^login, key: [client_ip], cost: 6 }, { policy: api-gold, key: [host], cost: 99 }]",
        &[],
        &[
            "rules[0].limits[0].policy: rule r: a cost of 6 is more than limit burst of policy login ever holds (5), so \
           every request is rejected",
        ],
    );
    check(
        "^{ service: { cluster: c }, rules: [{ name: r, limits: [{ policy: api, key: [{ header: a, secret: true }] }] }] }",
        &[],
        &["key_pepper: the service has one, and without it here secrets have other digests; give both the same"],
    );
}

#[test]
fn peppers_must_be_the_same() {
    check("service: { cluster: c }\nrules: []\nkey_pepper: salt\n", &[], &[]);
    check(
        "service: { cluster: c }\nrules: []\nkey_pepper: ^hunter2\n",
        &["key_pepper: is not the service's key_pepper: secrets have other digests there; give both the same"],
        &[],
    );
    let without = service(&SERVICE.replace("key_pepper: salt", ""));
    let report = check_text("p.yaml", "service: { cluster: c }\nrules: []\nkey_pepper: hunter2\n", Some(&without));
    assert_eq!((report.errors.len(), report.warnings.len()), (0, 1), "{report:?}");
    assert!(!format!("{report:?}").contains("hunter2"));
}

#[test]
fn every_configuration_within_other_files_is_found() {
    check(
        r#"apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
spec:
  pluginConfig:
    service: { cluster: c }
    rules: [{ name: r, limits: [{ policy: ^logn, key: [client_ip] }] }]
---
kind: WasmPlugin
spec: { pluginConfig: { another: plugin } }
---
kind: EnvoyExtensionPolicy
spec:
  wasm:
    - config: { another: plugin }
    - config: { service: { cluster: c }, rules: [{ name: g, limits: [{ policy: ^apx, key: [host] }] }] }
---
static_resources:
  filters:
    - configuration:
        "@type": type.googleapis.com/google.protobuf.Struct
        value: { service: { cluster: c }, rules: [{ name: s, limits: [{ policy: ^ap, key: [client_ip] }] }] }
    - configuration:
        "@type": type.googleapis.com/google.protobuf.StringValue
        value: ^'{"service":{"cluster":"c"},"rules":[{"name":"t","limits":[{"policy":"lgin","key":["host"]}]}]}'
    - configuration: { "@type": type.googleapis.com/google.protobuf.StringValue, value: another plugin }
"#,
        &[
            "rules[0].limits[0].policy: rule r: the service has no policy logn (did you mean login?)",
            "rules[0].limits[0].policy: rule g: the service has no policy apx (did you mean api?)",
            "rules[0].limits[0].policy: rule s: the service has no policy ap (did you mean api?)",
            "rules[0].limits[0].policy: rule t: the service has no policy lgin (did you mean login?)",
        ],
        &[],
    );
    let report = check_text("p.yaml", "kind: Service\nspec: {}\n", None);
    assert!(report.errors[0].reason.starts_with("there is no configuration of the filter in it"), "{report:?}");
}

#[test]
fn the_repositorys_own_files_belong_together() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let service = Config::load(&root.join("sluicegate.yaml"), &|_| None).unwrap();
    let report = super::check(&root.join("envoy/envoy.yaml"), Some(&service)).unwrap();
    assert_eq!((report.errors.len(), report.warnings.len(), report.plugins), (0, 0, 1), "{report:?}");
    assert!(report.rules >= 2 && report.limits >= 2, "{report:?}");
}

#[test]
fn a_lease_needs_a_policy_that_can_be_leased_from_and_refunds() {
    check_rule(
        "limits: [{ policy: ^api, key: [client_ip], lease: ^{ tokens: 5, for: 2s } }]",
        &[
            "rules[0].limits[0].policy: rule r: policy api has several limits, and a lease is of one; take lease off this \
           limit",
        ],
        &[
            "rules[0].limits[0].lease: the service allows no refunds, and without them no leases, so each request is asked \
           about; set refunds: true there",
        ],
    );
    let text =
        "service: { cluster: c }\nrules: [{ name: r, limits: [{ policy: POLICY, key: [host], lease: LEASE }] }]\n";
    let with_refunds = service(
        &format!("refunds: true\n{SERVICE}")
            .replace("per: 1m }]", "per: 1m }], ban: BAN")
            .replace("BAN", "{ after: 5, within: 1m, for: 1h }"),
    );
    let check = |policy: &str, tokens: &str, errors: &[&str], warnings: &[&str]| {
        let text = text.replace("POLICY", policy).replace("LEASE", &format!("{{ tokens: {tokens}, for: 2s }}"));
        let report = check_text("p.yaml", &text, Some(&with_refunds));
        for (found, expected) in [(&report.errors, errors), (&report.warnings, warnings)] {
            let found: Vec<_> = found.iter().map(|fault| fault.reason.as_str()).collect();
            assert_eq!(found.len(), expected.len(), "{found:?}");
            assert!(found.iter().zip(expected).all(|(found, expected)| found.contains(expected)), "{found:?}");
        }
    };
    check("login", "5", &["policy login has a ban, which must see every request; take lease off"], &[]);
    check("api-gold", "10", &[], &[]);
    check("api-gold", "11", &[], &["a lease of 11 tokens is more than policy api-gold ever holds (10)"]);
}
