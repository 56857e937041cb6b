//! A reply that is lost after the script ran: the take was charged, and must not be made again.

use std::time::Duration;

use sluicegate_tests::{Client, Cluster, FaultProxy, Load, Redis, Sentinels, until};

use crate::{
    load::{assert_charged_once, assert_in_time, charged, load, service},
    row::Outcome,
};

/// How much of the reply still arrives: nothing, its first byte, and some of it.
const KEPT_BYTES: [usize; 3] = [0, 1, 7];

pub(crate) async fn one() -> Outcome {
    let redis = Redis::start().await.unwrap();
    let proxy = FaultProxy::start(redis.port()).await.unwrap();
    let (_service, client) = service(&format!("redis://127.0.0.1:{}", proxy.port())).await;
    check(&client, &[&proxy]).await
}

pub(crate) async fn sentinel() -> Outcome {
    let sentinels = Sentinels::start_behind_proxies().await.unwrap();
    let (_service, client) = service(&sentinels.url()).await;
    check(&client, &[sentinels.proxy(sentinels.master().await.unwrap())]).await
}

pub(crate) async fn cluster() -> Outcome {
    let cluster = Cluster::start_behind_proxies().await.unwrap();
    let (_service, client) = service(&cluster.url()).await;
    check(&client, &[cluster.proxy(0), cluster.proxy(1), cluster.proxy(2)]).await
}

async fn check(client: &Client, proxies: &[&FaultProxy]) -> Outcome {
    let load: Load = load(client);
    let cuts = || proxies.iter().map(|proxy| proxy.cuts()).sum::<usize>();
    for (round, kept_bytes) in KEPT_BYTES.into_iter().enumerate() {
        load.go_on_for(50).await.unwrap();
        let victim = format!("victim-{round}");
        // The take alone has the script's hash and this subject on one connection; whichever node it goes to.
        for proxy in proxies {
            proxy.cut_reply(victim.as_bytes(), kept_bytes);
        }
        let answer = client.take("wide", &victim, 1).await.unwrap();
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(cuts(), round + 1);
        until("the service to be ready", Duration::from_secs(5), async || {
            (client.get("/readyz").await.unwrap().status == 200).then_some(())
        })
        .await
        .unwrap();
        until("the victim to be seen", Duration::from_secs(5), async || {
            (client.take("wide", &victim, 0).await.unwrap().status == 200).then_some(())
        })
        .await
        .unwrap();
        assert_eq!(charged(client, &victim).await, 1, "with {kept_bytes} bytes of the reply");
    }
    let samples = load.stop().await;
    assert_in_time(&samples);
    assert_charged_once(client, &samples).await;
    Outcome::of(&samples, None, "3 replies cut, each take charged once")
}
