//! A Redis Cluster that loses a master, moves slots, or decides a check in parts.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sluicegate_tests::{Ask, Client, Cluster, Load, Samples, Service, repository, until};

use crate::{
    load::{
        BACK_WITHIN, RATE, SUBJECTS, TIMEOUT, assert_back_soon, assert_charged_once, assert_in_time, charged, config,
        load, service, subject,
    },
    row::Outcome,
};

/// The key of a subject of the policy `wide`.
fn key(subject: &str) -> String {
    format!("sg:{{wide:{subject}}}:day")
}

/// The samples of the subjects that node `master` serves, and of all others.
async fn by_master(cluster: &Cluster, samples: &Samples, master: usize) -> (Samples, Samples) {
    let mut serves = HashMap::new();
    for number in 0..SUBJECTS {
        let subject = subject(number);
        let serving = cluster.master_of(&key(&subject)).await.unwrap();
        serves.insert(subject, serving == master);
    }
    let of = |wanted: bool| Samples::new(samples.iter().filter(|sample| serves[&sample.subject] == wanted).cloned());
    (of(true), of(false))
}

pub(crate) async fn master_killed() -> Outcome {
    let mut cluster = Cluster::start().await.unwrap();
    let (_service, client) = service(&cluster.url()).await;
    let load = load(&client);
    load.go_on_for(RATE.into()).await.unwrap();
    let slot = cluster.slot(&key(&subject(0))).await.unwrap();
    let master = cluster.master_of_slot(slot).await.unwrap();
    let killed = Instant::now();
    cluster.kill(master).await.unwrap();
    let new = cluster.taken_over(slot, master).await.unwrap();
    let taken_over = Instant::now();
    load.go_on_for(RATE.into()).await.unwrap();
    let samples = load.stop().await;

    assert_in_time(&samples);
    let (hit, others) = by_master(&cluster, &samples, new).await;
    assert_eq!(others.failed(), 0, "another master's slots suffered: {others:?}");
    assert_charged_once(&client, &others).await;
    let back_after = assert_back_soon(&hit, taken_over);
    // What the replica hadn't got when its master died is lost, and no more.
    let mut lost = 0;
    for (subject, samples) in hit.by_subject() {
        lost += (samples.allowed() as u64).saturating_sub(charged(&client, subject).await);
    }
    let replicating = hit.sent_in(killed - Duration::from_secs(1)..killed).len() as u64;
    assert!(lost <= replicating, "{lost} charges lost of {replicating} in the last second");
    let failover = (taken_over - killed).as_secs_f64();
    let seen = format!("failover in {failover:.1} s, {lost} charges lost, other slots: 0 of {} failed", others.len());
    Outcome::of(&samples, Some(back_after), seen)
}

pub(crate) async fn master_frozen() -> Outcome {
    let cluster = Cluster::start().await.unwrap();
    let (_service, client) = service(&cluster.url()).await;
    let load = load(&client);
    load.go_on_for(RATE.into()).await.unwrap();
    let slot = cluster.slot(&key(&subject(0))).await.unwrap();
    let master = cluster.master_of_slot(slot).await.unwrap();
    cluster.freeze(master);
    let new = cluster.taken_over(slot, master).await.unwrap();
    let taken_over = Instant::now();
    load.go_on_for(RATE.into()).await.unwrap();
    // It learns that it has become a replica, and its clients with it.
    cluster.thaw(master);
    cluster.settled().await.unwrap();
    load.go_on_for(RATE.into()).await.unwrap();
    let samples = load.stop().await;

    assert_in_time(&samples);
    let (hit, others) = by_master(&cluster, &samples, new).await;
    assert_eq!(others.failed(), 0, "another master's slots suffered: {others:?}");
    assert_charged_once(&client, &others).await;
    let back_after = assert_back_soon(&hit, taken_over);
    Outcome::of(&samples, Some(back_after), format!("other slots: 0 of {} failed", others.len()))
}

pub(crate) async fn slots_migrated() -> Outcome {
    const MIGRATIONS: u64 = 6;
    let cluster = Cluster::start().await.unwrap();
    // Some are charged before their slot begins to move, others only then: the one's key must move, the other's be made
    // where the slot goes.
    let service = Service::start(&config(Duration::from_secs(5)), &cluster.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    let load = load(&client);
    load.go_on_for(RATE.into()).await.unwrap();
    let mut fresh: Vec<Samples> = Vec::new();
    for number in 0..MIGRATIONS {
        let old = subject(number);
        let new = format!("fresh-{number}");
        for moving in [&old, &new] {
            let slot = cluster.slot(&key(moving)).await.unwrap();
            let from = cluster.master_of_slot(slot).await.unwrap();
            let migration = cluster.migrate(slot, (from + 1) % 3).await.unwrap();
            let ask = moving.clone();
            let on_it = Load::start(std::slice::from_ref(&client), 2, 200, move |_| Ask::take("wide", &*ask, 1));
            on_it.go_on_for(20).await.unwrap();
            let keys = migration.keys(10).await.unwrap();
            migration.move_keys(&keys).await.unwrap();
            on_it.go_on_for(20).await.unwrap();
            migration.finish().await.unwrap();
            on_it.go_on_for(20).await.unwrap();
            fresh.push(on_it.stop().await);
        }
    }
    fresh.push(move_several_keys(&cluster, &client).await);
    let steady = load.stop().await;
    let samples = Samples::new(steady.iter().chain(fresh.iter().flat_map(|samples| samples.iter())).cloned());

    assert_eq!(samples.failed(), 0, "{samples:?}");
    let one_limit = Samples::new(samples.iter().filter(|sample| sample.subject != SEVERAL_KEYS).cloned());
    assert_charged_once(&client, &one_limit).await;
    Outcome::of(&samples, None, format!("{} slots moved, each take charged once", MIGRATIONS * 2 + 1))
}

/// A subject of the policy `two`.
const SEVERAL_KEYS: &str = "several-keys";

/// Redis takes no call of several keys on a slot that is being moved: they are repeated until it is done.
async fn move_several_keys(cluster: &Cluster, client: &Client) -> Samples {
    let key = format!("sg:{{two:{SEVERAL_KEYS}}}:day");
    let slot = cluster.slot(&key).await.unwrap();
    let from = cluster.master_of_slot(slot).await.unwrap();
    let to = (from + 1) % 3;
    let migration = cluster.migrate(slot, to).await.unwrap();
    let on_it = Load::start(std::slice::from_ref(client), 2, 200, |_| Ask::take("two", SEVERAL_KEYS, 1));
    let refused = async || {
        let count = cluster.node(to).info("errorstats", "errorstat_TRYAGAIN").await.ok()??;
        count.strip_prefix("count=")?.parse::<u64>().ok()
    };
    until("more refusals than redirects may be followed", Duration::from_secs(4), async || {
        refused().await.filter(|refused| *refused > 60)
    })
    .await
    .unwrap();
    migration.finish().await.unwrap();
    on_it.go_on_for(20).await.unwrap();
    on_it.stop().await
}

const OVER_SLOTS: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 200ms }
policies:
  wide: { limits: [{ name: day, capacity: 1000000, refill: 1000000, per: 1d, interval: true }] }
  three: { limits: [{ name: day, capacity: 3, refill: 3, per: 1d, interval: true }] }
";

fn two_checks(wide: &str, three: &str) -> Value {
    json!({ "checks": [{ "policy": "wide", "key": wide }, { "policy": "three", "key": three }] })
}

/// Checks whose subjects are on different nodes: what one takes is given back when the other denies or fails.
pub(crate) async fn checks_over_slots() -> Outcome {
    let cluster = Cluster::start_behind_proxies().await.unwrap();
    let service = Service::start(OVER_SLOTS, &cluster.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    let of = async |master: usize, policy: &str| {
        for number in 0.. {
            let subject = format!("user-{number}");
            let key = format!("sg:{{{policy}:{subject}}}:day");
            if cluster.master_of(&key).await.unwrap() == master {
                return subject;
            }
        }
        unreachable!("every master serves some subject");
    };
    let (wide, three) = (of(0, "wide").await, of(1, "three").await);

    // Denied: the other is not charged.
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(client.check(&two_checks(&wide, &three)).await.unwrap().status);
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    assert_eq!(charged(&client, &wide).await, 3);

    // Many at once, joined: exactly what the tighter bucket holds, and the surplus comes back.
    let tight = of(2, "three").await;
    let body = two_checks(&wide, &tight);
    let request = move |_| Ask { subject: "both".to_owned(), body: body.clone() };
    let samples = sluicegate_tests::burst(service.port(), 300, 100, request).await.unwrap();
    assert_eq!((samples.allowed(), samples.denied(), samples.failed()), (3, 297, 0), "{samples:?}");
    until("the surplus to be given back", Duration::from_secs(5), async || {
        (charged(&client, &wide).await == 6).then_some(())
    })
    .await
    .unwrap();

    // A give-back whose reply is lost may have given: it is counted, and not repeated.
    let give = redis::Script::new(&std::fs::read_to_string(repository("lua/give.lua")).unwrap());
    assert_eq!(failed_give_backs(&service).await, 0);
    cluster.proxy(0).cut_reply(give.get_hash().as_bytes(), 0);
    let denied = client.check(&two_checks(&wide, &three)).await.unwrap();
    assert_eq!(denied.status, 429, "{denied:?}");
    assert_eq!(cluster.proxy(0).cuts(), 1);
    until("the failure to be counted", BACK_WITHIN, async || (failed_give_backs(&service).await == 1).then_some(()))
        .await
        .unwrap();
    until("the node to be back", BACK_WITHIN, async || {
        (client.take("wide", &wide, 0).await.unwrap().status == 200).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(charged(&client, &wide).await, 6);

    // Its node doesn't answer: the check fails, and what the other node took is given back.
    cluster.freeze(1);
    let sent = Instant::now();
    let failed = client.check(&two_checks(&wide, &three)).await.unwrap();
    assert_eq!(failed.status, 503, "{failed:?}");
    assert!(sent.elapsed() <= 2 * TIMEOUT + Duration::from_millis(250), "{:?}", sent.elapsed());
    until("what was taken to be given back", BACK_WITHIN, async || (charged(&client, &wide).await == 6).then_some(()))
        .await
        .unwrap();
    // A shadow check there has no say.
    let mut shadow = two_checks(&wide, &three);
    shadow["checks"][1]["shadow"] = true.into();
    let allowed = client.check(&shadow).await.unwrap();
    assert_eq!(allowed.status, 200, "{allowed:?}");
    assert_eq!(allowed.json()["results"].as_array().unwrap().len(), 1, "{allowed:?}");
    cluster.thaw(1);
    cluster.settled().await.unwrap();
    Outcome::of(&samples, None, "denied, joined and failed checks gave back what they took")
}

/// What the service counts of give-backs that failed.
async fn failed_give_backs(service: &Service) -> u64 {
    let admin = Client::new(service.admin_port()).unwrap();
    let text = String::from_utf8(admin.get("/metrics").await.unwrap().body).unwrap();
    let count = text.lines().find_map(|line| line.strip_prefix("sluicegate_store_give_back_failures_total "));
    count.unwrap_or_else(|| panic!("no such count in {text}")).parse().unwrap()
}
