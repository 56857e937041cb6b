//! The scripts' texts, and running them.

use std::sync::LazyLock;

use redis::Script;

use crate::ReplyError;

/// `lua/take.lua`: the service's take.
pub static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../take.lua")));

/// `lua/token_bucket.lua`: one bucket in one key, for callers in any language.
pub const TOKEN_BUCKET: &str = include_str!("../token_bucket.lua");

/// Why a script gave no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Redis or the way to it failed.
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
    /// The reply is not what the script returns.
    #[error(transparent)]
    Reply(#[from] ReplyError),
}

/// Loads the take script, so that the first take costs one round trip; also proves that the store runs scripts.
pub async fn load_take<C>(connection: &mut C) -> Result<(), RunError>
where
    C: redis::aio::ConnectionLike,
{
    TAKE.prepare_invoke().load_async(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path};

    /// Joins a script from its parts: a line `--@include FILE` stands for that file.
    fn join(name: &str) -> String {
        let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("parts");
        let part = |file: &str| fs::read_to_string(parts.join(file)).unwrap();
        part(name)
            .split_inclusive('\n')
            .map(|line| match line.strip_prefix("--@include ") {
                Some(file) => part(file.trim_end()) + "\n",
                None => line.to_owned(),
            })
            .collect()
    }

    /// `SLUICEGATE_JOIN=1 cargo test -p sluicegate-lua published` writes the published files anew.
    #[test]
    fn published_scripts_equal_their_parts() {
        for name in ["take.lua", "token_bucket.lua"] {
            let published = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            if env::var_os("SLUICEGATE_JOIN").is_some() {
                fs::write(&published, join(name)).unwrap();
            }
            let text = fs::read_to_string(&published).unwrap();
            assert!(text == join(name), "lua/{name} differs from lua/parts: run this test with SLUICEGATE_JOIN=1");
        }
    }
}
