//! Row l: memory, of a million buckets and over time.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use sluicegate_tests::{Client, Service};
use tokio::time::{Instant, interval};

use super::{POLICIES, Row, proxies};
use crate::{
    captured,
    figure::{Figure, Goal, Line},
    load::{Load, Oha, Wrk},
    peer::Bare,
    rounds::Spread,
    setting::Setting,
    side::Side,
    store::Store,
    usage,
};

const BUCKETS: u32 = 1_000_000;
/// Calls in one write.
const BATCH: u32 = 1000;
/// Looks at the memory in one soak.
const LOOKS: u32 = 60;

pub(super) async fn all(setting: &Setting) -> Result<Vec<Line>> {
    let mut lines = vec![buckets().await?];
    lines.extend(soak(setting).await?);
    Ok(lines)
}

/// What Redis needs for a bucket, its key and its TTL included.
async fn buckets() -> Result<Line> {
    let store = Store::start().await?;
    let service = Service::start(POLICIES, &store.url()).await?;
    let words = captured::take(service.port(), store.port(), "api").await?;
    let mut connection = store.connection().await?;
    let before = used_bytes(&store).await?;
    for first in (1..=BUCKETS).step_by(BATCH as usize) {
        let mut pipe = redis::pipe();
        for number in first..first + BATCH {
            let number = format!("{number:012}");
            let mut command = redis::cmd(&words[0]);
            for word in &words[1..] {
                command.arg(word.replace("__rand_int__", &number));
            }
            pipe.add_command(command).ignore();
        }
        pipe.exec_async(&mut connection).await?;
    }
    let bytes = (used_bytes(&store).await? - before) as f64 / f64::from(BUCKETS);
    let key = words[3].replace("__rand_int__", "000000000000").len();
    let scenario = format!("bytes a bucket, 1,000,000 of them, keys of {key} bytes");
    let figure = Figure::new(Row::L, scenario, "1", Spread::of([bytes]), Goal::AtMost(160.0));
    Ok(Line::Figure(figure))
}

async fn used_bytes(store: &Store) -> Result<u64> {
    Ok(store.node().info("memory", "used_memory").await?.context("no used_memory")?.parse()?)
}

/// How much service and VMs grow under steady load by subjects that all come once.
async fn soak(setting: &Setting) -> Result<Vec<Line>> {
    let store = Store::start().await?;
    let mut service = Service::start(POLICIES, &store.url()).await?;
    let upstream = Bare::upstream(&setting.bare_server).await?;
    let limit = json!({ "policy": "api", "key": [{ "path_segment": 1 }] });
    let envoy = proxies::ours(service.port(), upstream.port(), &proxies::plugin_of(&limit, "closed")).await?;

    let closed_loop = Load::Wrk(Wrk::get(envoy.port(), "/u/{key}", ["x-soak", "1"], BUCKETS));
    let saturation = Side::new("many subjects through Envoy", closed_loop).turn(setting.turn).await?.rate();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
    let per_second = (saturation / 2.0) as u64;
    // Of ten million paths hardly one comes twice.
    let load = Oha { port: envoy.port(), path: "/u/[0-9]{7}", random: true, header: "x-soak: 1", per_second };
    eprintln!("  soaking for {:?} at {per_second} requests a second", setting.soak);

    let pid = service.process().id();
    let (mut service_bytes, mut vm_bytes) = (Vec::new(), Vec::new());
    let load = Load::Oha(load);
    let soaked = load.run(setting.soak);
    tokio::pin!(soaked);
    let mut looks = interval(setting.soak / LOOKS);
    let start = Instant::now();
    let seen = loop {
        tokio::select! {
            seen = &mut soaked => break seen?,
            _ = looks.tick() => {
                service_bytes.push((start.elapsed(), usage::resident_bytes(pid)? as f64));
                let kib: u64 = envoy.wasm_memories_kib()?.iter().sum();
                vm_bytes.push((start.elapsed(), kib as f64 * 1024.0));
            }
        }
    };
    anyhow::ensure!(seen.refused == 0 && seen.broken == 0, "wrong answers: {seen:?}");
    let keys: u64 = store.node().run(&["DBSIZE"]).await?;
    let alive = Client::new(service.port())?.get("/readyz").await?;
    anyhow::ensure!(alive.status == 200, "the service is not ready after the soak");
    let minutes = setting.soak.as_secs_f64() / 60.0;
    let figure = |what: &str, looks: &[(Duration, f64)]| {
        let (early, late) = ends(setting.soak, looks);
        let mib = |bytes: f64| format!("{:.1} MiB", bytes / f64::from(1 << 20));
        let scenario =
            format!("{what}'s memory after {minutes:.0} min at {per_second} requests a second, {keys} subjects");
        let growth = Spread::of([late / early]);
        Line::Figure(
            Figure::new(Row::L, scenario, "after a fifth of it", growth, Goal::Below(1.05)).of(mib(late), mib(early)),
        )
    };
    Ok(vec![figure("the service", &service_bytes), figure("the filter", &vm_bytes)])
}

/// The medians of the second fifth, after warm-up, and of the last.
fn ends(soak: Duration, looks: &[(Duration, f64)]) -> (f64, f64) {
    let fifth = soak / 5;
    let median = |from: Duration, to: Duration| {
        Spread::of(looks.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, bytes)| *bytes)).median
    };
    (median(fifth, 2 * fifth), median(4 * fifth, Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_from_the_second_fifth_to_the_last() {
        let looks: Vec<_> = (0..50).map(|second| (Duration::from_secs(second), second as f64)).collect();
        assert_eq!(ends(Duration::from_secs(50), &looks), (14.5, 44.5));
    }
}
