//! How many connections this process has descriptors for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that connections of the data listener never get, where the process may have more than twice as many: for
/// the store's connections, the admin listener's, files, and answers to connections that are too many.
const RESERVED: usize = 512;

/// Raises the number of descriptors to the most that the system allows, and says how many connections of the data
/// listener there may be: those asked for, or fewer so that the rest of the service always has its own.
pub(super) fn data_connections(asked: usize) -> usize {
    let limit = raise();
    let most = limit - RESERVED.min(limit / 2);
    if asked > most {
        tracing::warn!(
            max_connections = asked,
            descriptors = limit,
            "at most {most} connections: this process may not have more descriptors; raise its limit (ulimit -n, \
             LimitNOFILE) or lower max_connections"
        );
    }
    asked.min(most)
}

/// The limit as it is then.
fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // The soft limit is low by default for the sake of programs that use select(), which this isn't.
    let limit =
        if setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok() { maximum } else { current };
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}
