//! Keys that expire, and the few commands that the scripts call on them.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use super::ClockMs;

/// Expired keys removed with each command: more than one, so that removing keeps up with writing.
const REMOVED_PER_COMMAND: usize = 2;

pub(super) struct Keyspace {
    entries: HashMap<Vec<u8>, Entry>,
    /// When to look at a key, earliest first. A row for each write would grow with the writes, so there is one for each
    /// key, made anew when the key then lives longer, and another only when a key is to go earlier than its row says.
    due: BinaryHeap<Reverse<(u64, Vec<u8>)>>,
    clock: ClockMs,
    commands: u64,
}

struct Entry {
    /// None once deleted: the entry then only waits for its row.
    value: Option<Vec<u8>>,
    expires_ms: u64,
    /// When its row is due.
    due_ms: u64,
}

/// What a command answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Ok,
    Missing,
    Integer(i64),
    Bulk(Vec<u8>),
    List(Vec<String>),
}

impl Keyspace {
    pub(super) fn new(clock: ClockMs) -> Self {
        Self { entries: HashMap::new(), due: BinaryHeap::new(), clock, commands: 0 }
    }

    /// Runs one command; an unknown one is an error, as on Redis.
    pub(super) fn call(&mut self, arguments: &[&[u8]]) -> Result<Reply, String> {
        self.commands += 1;
        let now_ms = (self.clock)();
        self.remove_expired(now_ms);
        match arguments {
            [b"TIME"] => Ok(Reply::List(vec![(now_ms / 1000).to_string(), (now_ms % 1000 * 1000).to_string()])),
            [b"GET", key] => Ok(self.get(key, now_ms).map_or(Reply::Missing, |value| Reply::Bulk(value.to_vec()))),
            [b"SET", key, value, b"PX", ttl] => {
                self.keep(key, Some(value.to_vec()), now_ms + ttl_ms(ttl)?);
                Ok(Reply::Ok)
            }
            [b"PEXPIRE", key, ttl] => {
                let expires_ms = now_ms + ttl_ms(ttl)?;
                let value = self.get(key, now_ms).map(<[u8]>::to_vec);
                let live = value.is_some();
                if live {
                    self.keep(key, value, expires_ms);
                }
                Ok(Reply::Integer(i64::from(live)))
            }
            // -2 for a key that isn't there; none here is without an end, which would be -1.
            [b"PTTL", key] => {
                let entry = self.entries.get(*key).filter(|entry| entry.live(now_ms).is_some());
                let left_ms = entry.map(|entry| i64::try_from(entry.expires_ms - now_ms).unwrap_or(i64::MAX));
                Ok(Reply::Integer(left_ms.unwrap_or(-2)))
            }
            [b"DEL", key] => {
                let live = self.get(key, now_ms).is_some();
                if let Some(entry) = self.entries.get_mut(*key) {
                    entry.value = None;
                }
                Ok(Reply::Integer(i64::from(live)))
            }
            _ => {
                let command: Vec<_> = arguments.iter().map(|argument| String::from_utf8_lossy(argument)).collect();
                Err(format!("ERR not a command of the embedded store: {}", command.join(" ")))
            }
        }
    }

    pub(super) const fn commands(&self) -> u64 {
        self.commands
    }

    /// Every key, its value and the ms it lives; what is expired goes.
    pub(super) fn entries(&mut self) -> Vec<(String, String, u64)> {
        let now_ms = (self.clock)();
        self.entries.retain(|_, entry| entry.live(now_ms).is_some());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let live = self.entries.iter().filter_map(|(key, entry)| Some((key, entry.live(now_ms)?, entry)));
        live.map(|(key, value, entry)| (text(key), text(value), entry.expires_ms - now_ms)).collect()
    }

    fn get(&self, key: &[u8], now_ms: u64) -> Option<&[u8]> {
        self.entries.get(key)?.live(now_ms)
    }

    fn keep(&mut self, key: &[u8], value: Option<Vec<u8>>, expires_ms: u64) {
        match self.entries.get_mut(key) {
            Some(entry) if entry.due_ms <= expires_ms => {
                entry.value = value;
                entry.expires_ms = expires_ms;
            }
            _ => {
                self.entries.insert(key.to_vec(), Entry { value, expires_ms, due_ms: expires_ms });
                self.due.push(Reverse((expires_ms, key.to_vec())));
            }
        }
    }

    fn remove_expired(&mut self, now_ms: u64) {
        for _ in 0..REMOVED_PER_COMMAND {
            match self.due.peek() {
                Some(Reverse((due_ms, _))) if *due_ms <= now_ms => {}
                _ => return,
            }
            let Some(Reverse((due_ms, key))) = self.due.pop() else { return };
            match self.entries.get_mut(&key) {
                // An older row than the one that counts.
                Some(entry) if entry.due_ms != due_ms => {}
                Some(entry) if entry.live(now_ms).is_some() => {
                    entry.due_ms = entry.expires_ms;
                    self.due.push(Reverse((entry.expires_ms, key)));
                }
                _ => {
                    self.entries.remove(&key);
                }
            }
        }
    }
}

impl Entry {
    fn live(&self, now_ms: u64) -> Option<&[u8]> {
        self.value.as_deref().filter(|_| now_ms < self.expires_ms)
    }
}

fn ttl_ms(argument: &[u8]) -> Result<u64, String> {
    let ttl_ms = std::str::from_utf8(argument).ok().and_then(|text| text.parse().ok());
    ttl_ms.filter(|&ms| ms > 0).ok_or_else(|| "ERR invalid expire time in 'set' command".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use super::*;

    struct Clock(Arc<AtomicU64>);

    fn keyspace() -> (Keyspace, Clock) {
        let now_ms = Arc::new(AtomicU64::new(1_000));
        let clock = Arc::clone(&now_ms);
        (Keyspace::new(Box::new(move || clock.load(Ordering::Relaxed))), Clock(now_ms))
    }

    impl Clock {
        fn pass(&self, ms: u64) {
            self.0.fetch_add(ms, Ordering::Relaxed);
        }
    }

    fn set(keyspace: &mut Keyspace, key: &str, ttl_ms: &str) {
        keyspace.call(&[b"SET", key.as_bytes(), b"v", b"PX", ttl_ms.as_bytes()]).unwrap();
    }

    #[test]
    fn a_key_lives_until_its_time() {
        let (mut keyspace, clock) = keyspace();
        set(&mut keyspace, "a", "10");
        clock.pass(9);
        assert_eq!(keyspace.call(&[b"GET", b"a"]), Ok(Reply::Bulk(b"v".to_vec())));
        assert_eq!(keyspace.call(&[b"PEXPIRE", b"a", b"5"]), Ok(Reply::Integer(1)));
        clock.pass(2);
        assert_eq!(keyspace.call(&[b"PTTL", b"a"]), Ok(Reply::Integer(3)));
        clock.pass(3);
        assert_eq!(keyspace.call(&[b"PTTL", b"a"]), Ok(Reply::Integer(-2)));
        assert_eq!(keyspace.call(&[b"GET", b"a"]), Ok(Reply::Missing));
        assert_eq!(keyspace.call(&[b"PEXPIRE", b"a", b"5"]), Ok(Reply::Integer(0)));
    }

    #[test]
    fn memory_follows_the_keys_and_not_the_writes() {
        let (mut keyspace, clock) = keyspace();
        for _ in 0..1_000 {
            set(&mut keyspace, "long", "1000000");
            set(&mut keyspace, "short", "3");
            set(&mut keyspace, "given-back", "1000000");
            keyspace.call(&[b"DEL", b"given-back"]).unwrap();
            set(&mut keyspace, "both", "1000000");
            set(&mut keyspace, "both", "5");
            clock.pass(1);
        }
        assert!(keyspace.due.len() < 10 && keyspace.entries.len() <= 4, "{} rows", keyspace.due.len());
        clock.pass(2_000_000);
        for _ in 0..10 {
            keyspace.call(&[b"TIME"]).unwrap();
        }
        assert!(keyspace.due.is_empty() && keyspace.entries.is_empty());
    }

    #[test]
    fn what_redis_would_refuse_is_refused() {
        let (mut keyspace, _clock) = keyspace();
        for command in [&[b"SET".as_slice(), b"a", b"v"][..], &[b"SET", b"a", b"v", b"PX", b"0"], &[b"INCR", b"a"]] {
            assert!(keyspace.call(command).is_err());
        }
    }
}
