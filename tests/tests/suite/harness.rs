//! What every test leans on can fail.

use sluicegate_tests::Redis;

#[tokio::test]
#[should_panic(expected = "leak never expires")]
async fn a_key_without_a_ttl_fails_the_test() {
    let redis = Redis::start().await.unwrap();
    let mut connection = redis.connection().await.unwrap();
    redis::cmd("SET").arg("leak").arg(1).exec_async(&mut connection).await.unwrap();
    drop(redis);
}
