//! `lua/read_override.lua`: the numbers that a subject has of its own now.

use sluicegate_wire::Name;

use crate::{Call, Keys, ReplyError, reply::Reply, script::READ_OVERRIDE};

/// An override as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOverride {
    /// Whether use renews it.
    pub keep: bool,
    /// How long it lasts from now if nobody uses it, in ms.
    pub left_ms: u64,
    /// The numbers by limit: those of limits that the policy no longer has, too.
    pub limits: Vec<(Name, OwnNumbers)>,
}

/// Numbers of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnNumbers {
    /// Of a bucket.
    Bucket {
        /// The most tokens it holds.
        capacity: u64,
        /// Tokens gained in each `per_ms`, reduced where the bucket refills all the time.
        refill: u64,
        /// The period of the refill, in ms.
        per_ms: u64,
        /// Whether it refills once a period rather than all the time.
        interval: bool,
    },
    /// Of a quota: its tokens.
    Quota(u64),
}

impl StoredOverride {
    /// The call that reads it.
    #[must_use]
    pub fn call(keys: &Keys) -> Call {
        Call { script: &READ_OVERRIDE, keys: vec![keys.overrides()], args: Vec::new() }
    }

    /// Reads the script's reply; none without an override.
    ///
    /// # Errors
    /// When the key holds something else.
    pub fn read(reply: &[i64]) -> Result<Option<Self>, ReplyError> {
        if reply.is_empty() {
            return Ok(None);
        }
        let mut reply = Reply::new(reply);
        let left_ms = reply.next()?;
        let mut text = Vec::new();
        while !reply.is_empty() {
            text.push(u8::try_from(reply.next()?).map_err(|_| ReplyError)?);
        }
        let text = String::from_utf8(text).map_err(|_| ReplyError)?;
        let (first, lines) = text.split_once('\n').ok_or(ReplyError)?;
        let limits = lines.lines().map(|line| parse(line).ok_or(ReplyError)).collect::<Result<_, _>>()?;
        Ok(Some(Self { keep: first == "keep", left_ms, limits }))
    }
}

/// Reads a line such as `burst g 10 1 1000` or `month q 500`.
fn parse(line: &str) -> Option<(Name, OwnNumbers)> {
    let mut words = line.split(' ');
    let (name, mode) = (words.next()?.parse().ok()?, words.next()?);
    let mut number = || words.next()?.parse().ok();
    let numbers = match mode {
        "q" => OwnNumbers::Quota(number()?),
        "g" | "i" => {
            OwnNumbers::Bucket { capacity: number()?, refill: number()?, per_ms: number()?, interval: mode == "i" }
        }
        _ => return None,
    };
    words.next().is_none().then_some((name, numbers))
}
