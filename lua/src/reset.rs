//! `lua/reset.lua`: forgets what a subject took.

use crate::{Call, Keys, Policy, ReplyError, reply::Reply, script::RESET};

/// Makes every limit of a policy full for one subject and lifts its ban. An override stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The keys of policy and subject.
    pub keys: Keys,
}

impl Reset<'_> {
    /// The call.
    #[must_use]
    pub fn call(&self) -> Call {
        let mut call = Call::new(&RESET);
        call.keys = self.policy.limits().iter().map(|limit| self.keys.limit(&limit.name)).collect();
        call.keys.push(self.keys.ban());
        call
    }

    /// The call that takes a subject's override away.
    #[must_use]
    pub fn override_of(keys: &Keys) -> Call {
        Call { script: &RESET, keys: vec![keys.overrides()], args: Vec::new() }
    }

    /// Reads the script's reply: how many keys there were.
    pub fn read(reply: &[i64]) -> Result<u64, ReplyError> {
        let mut reply = Reply::new(reply);
        let count = reply.next()?;
        reply.end()?;
        Ok(count)
    }
}
