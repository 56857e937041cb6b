//! What `rate_limit_service` may say, and what is wrong with the rest.

use crate::config::{Entry, KeyPart, Outcome, RateLimitService, Value};

use super::*;

fn domains(yaml: &str) -> RateLimitService {
    parse(&format!("{STORE}{POLICIES}rate_limit_service: {{ domains: {{ {yaml} }} }}\n"))
        .unwrap()
        .policies
        .rate_limit_service()
        .clone()
}

/// The fault of a domain `edge` with these mappings.
fn check_mappings(marked: &str, expected: &str) {
    let expected = format!("rate_limit_service.domains.edge{expected}");
    check(&format!("{STORE}{POLICIES}rate_limit_service:\n  domains:\n    edge:\n{marked}\n"), &[&expected]);
}

#[test]
fn without_it_there_are_no_domains() {
    assert!(parse(&format!("{STORE}{POLICIES}")).unwrap().policies.rate_limit_service().domains.is_empty());
}

#[test]
fn mappings_are_read() {
    let service = domains(
        "edge: [
        { match: [{ generic_key: api }, remote_address], policy: api },
        { match: [{ path: '/v1/*' }, { x: '*' }, { x: a }], policy: api, shadow: true },
        { match: [{ a: x }, { b: y }], policy: api },
        { match: [{ a: x }, user, tenant], policy: api, key: [tenant, { entry: user, secret: true }] },
        { match: [internal], unlimited: true }], other: []",
    );
    assert!(!service.refuse_unknown_domain);
    assert!(service.domains["other"].is_empty());
    let edge = &service.domains["edge"];
    let entry = |key: &str, value| Entry { key: key.into(), value };
    assert_eq!(
        edge[1].entries,
        [entry("path", Value::Prefix("/v1/".into())), entry("x", Value::Any), entry("x", Value::Exact("a".into()))]
    );
    let outcome = |index: usize| match &edge[index].outcome {
        Outcome::Unlimited => None,
        Outcome::Limited { policy, key, shadow } => Some((
            policy.name().as_str(),
            key.iter().map(|part| (part.entry, part.secret)).collect::<Vec<_>>(),
            *shadow,
        )),
    };
    let expected = [
        Some(("api", vec![(1, false)], false)),
        Some(("api", vec![(0, false), (1, false)], true)),
        Some(("api", vec![(0, false), (1, false)], false)),
        Some(("api", vec![(2, false), (1, true)], false)),
        None,
    ];
    for (index, expected) in expected.into_iter().enumerate() {
        assert_eq!(outcome(index), expected, "{index}");
    }
    assert_ne!(KeyPart { entry: 0, secret: true }, KeyPart { entry: 0, secret: false });
}

#[test]
fn a_mapping_matches_all_entries_in_order() {
    let service = domains("edge: [{ match: [{ a: x }, { b: 'p*' }, c], policy: api }]");
    let matches = |entries: &[(&str, &str)]| {
        let entries = entries.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes()));
        service.domains["edge"][0].matches(entries.collect::<Vec<_>>().into_iter())
    };
    assert!(matches(&[("a", "x"), ("b", "p"), ("c", "")]));
    assert!(matches(&[("a", "x"), ("b", "path"), ("c", "anything")]));
    for entries in [
        &[][..],
        &[("a", "x"), ("b", "p")],
        &[("a", "x"), ("b", "p"), ("c", ""), ("d", "")],
        &[("a", "y"), ("b", "p"), ("c", "")],
        &[("a", "x"), ("b", "q"), ("c", "")],
        &[("a", "x"), ("b", ""), ("c", "")],
        &[("b", "p"), ("a", "x"), ("c", "")],
        &[("a", "x"), ("b", "p"), ("C", "")],
    ] {
        assert!(!matches(entries), "{entries:?}");
    }
}

#[test]
fn an_unknown_domain_is_allowed_or_an_error() {
    let parse = |unknown: &str| {
        parse(&format!("{STORE}{POLICIES}rate_limit_service: {{ unknown_domain: {unknown}, domains: {{ e: [] }} }}"))
    };
    assert!(parse("error").unwrap().policies.rate_limit_service().refuse_unknown_domain);
    assert!(!parse("allow").unwrap().policies.rate_limit_service().refuse_unknown_domain);
    check_settings(
        "rate_limit_service: { unknown_domain: ^deny, domains: { e: [] } }",
        "rate_limit_service.unknown_domain: must be allow or error",
    );
}

#[test]
fn mistakes_of_form_name_the_place() {
    check_settings(
        "rate_limit_service: ^{}",
        "rate_limit_service.domains: is missing; add domains: { edge: [ { match: [ remote_address ], policy: api } ] }",
    );
    check_settings(
        "rate_limit_service: { domains: ^{} }",
        "rate_limit_service.domains: is empty; add the domain of Envoy's filter, or leave rate_limit_service out",
    );
    check_settings(
        "rate_limit_service: { domains: { '': ^[] } }",
        "rate_limit_service.domains.: a domain has a name: that of Envoy's filter",
    );
    check_mappings(
        "      - { match: [a], policy: api, ^polic: api }",
        "[0].polic: there is no such field here (did you mean policy?); there are: match, policy, key, shadow, unlimited",
    );
    check_mappings(
        "      - { ^policy: api }",
        "[0].match: is missing; add the entries of the descriptors it is for, such as match: [ remote_address ]",
    );
    check_mappings(
        "      - { match: [^{ a: x, b: y }], policy: api }",
        "[0].match[0]: an entry is a key, or one { KEY: VALUE }",
    );
    check_mappings(
        "      - { match: [^[a]], policy: api }",
        "[0].match[0]: invalid type: sequence, expected an entry's key, or { KEY: VALUE }",
    );
    check_mappings(
        "      - { match: [a], policy: api, key: [{ entry: a, ^hashed: true }] }",
        "[0].key[0].hashed: there is no such field here; there are: entry, secret",
    );
}

#[test]
fn mistakes_of_value_say_the_fix() {
    check_mappings("      - { match: [a], policy: ^apy }", "[0].policy: there is no policy \"apy\"; there are: api");
    check_mappings(
        "      - ^{ match: [a] }",
        "[0]: needs a policy; add policy: and a name of policies, or unlimited: true alone",
    );
    check_mappings(
        "      - ^{ match: [a], unlimited: true, shadow: true }",
        "[0]: needs a policy; add policy: and a name of policies, or unlimited: true alone",
    );
    check_mappings(
        "      - ^{ match: [a], unlimited: true, policy: api }",
        "[0]: is unlimited and has a policy; keep one of them",
    );
    check_mappings(
        "      - { match: ^[], policy: api }",
        "[0].match: is empty; name the entries of a descriptor, such as [ remote_address ]",
    );
    check_mappings("      - { match: [^''], policy: api }", "[0].match[0]: an entry has a key, such as remote_address");
    check_mappings(
        "      - { match: [a, b], policy: api, key: [^c] }",
        "[0].key[0]: match has no entry \"c\"; it has: a, b",
    );
    check_mappings(
        "      - { match: [a, a], policy: api, key: [^a] }",
        "[0].key[0]: match has \"a\" twice; leave key out, or give the entries keys of their own (descriptor_key in \
         Envoy)",
    );
    check_mappings(
        "      - { match: [a], policy: api, key: ^[] }",
        "[0].key: is empty; name entries of match, or leave key out",
    );
    for (first, second) in [("a", "a"), ("a", "{ a: x }"), ("{ a: x }", "{ a: x }"), ("{ a: 'x*' }", "{ a: xy }")] {
        check_mappings(
            &format!("      - {{ match: [{first}], policy: api }}\n      - {{ match: ^[{second}], policy: api }}"),
            "[1].match: is never reached, since [0] matches all of it; put this one first",
        );
    }
    domains(
        "edge: [{ match: [{ a: xy }], policy: api }, { match: [{ a: 'x*' }], policy: api }, { match: [a], policy: api }]",
    );
}

/// A faulty policy is told of once, not again where it is named.
#[test]
fn a_faulty_policy_is_one_fault() {
    let policies = "policies: { api: { limits: [ { name: a, capacity: ^0, refill: 1, per: 1s } ] } }\n";
    check(
        &format!("{STORE}{policies}rate_limit_service: {{ domains: {{ e: [ {{ match: [a], policy: api }} ] }} }}\n"),
        &["policies.api.limits[0].capacity: is 0, which denies everything; use at least 1"],
    );
}
