//! Running a call on Redis.

use redis::{RedisError, aio::ConnectionLike};

use crate::Call;

/// Runs a call in one round trip; in two when the server doesn't have the script yet.
pub async fn run<C: ConnectionLike>(call: &Call, connection: &mut C) -> Result<Vec<i64>, RedisError> {
    let mut invocation = call.script.redis.prepare_invoke();
    invocation.key(&call.keys).arg(&call.args);
    invocation.invoke_async(connection).await
}
