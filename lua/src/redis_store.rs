//! Calls and scripts as commands of Redis.

use redis::{Cmd, RedisError, ServerErrorKind, aio::ConnectionLike, cmd};

use crate::{Call, Script};

impl Call {
    /// The call by its script's hash: a server that doesn't have the script answers NOSCRIPT, and nothing ran.
    #[must_use]
    pub fn by_hash(&self) -> Cmd {
        self.command("EVALSHA", self.script.redis.get_hash())
    }

    /// The call with the script's text, some kB of it: the server keeps the script.
    #[must_use]
    pub fn by_text(&self) -> Cmd {
        self.command("EVAL", self.script.source)
    }

    fn command(&self, name: &'static str, script: &str) -> Cmd {
        let mut command = cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.args);
        command
    }
}

impl Script {
    /// Gives the script to a server ahead of its calls.
    #[must_use]
    pub fn load(&self) -> Cmd {
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(self.source);
        command
    }
}

/// Runs a call in one round trip; in two when the server doesn't have the script yet.
pub async fn run<C: ConnectionLike>(call: &Call, connection: &mut C) -> Result<Vec<i64>, RedisError> {
    match call.by_hash().query_async(connection).await {
        Err(error) if error.kind() == ServerErrorKind::NoScript.into() => call.by_text().query_async(connection).await,
        replied => replied,
    }
}
