//! Hash slots: which part of a Redis Cluster a key belongs to.

use crc::{CRC_16_XMODEM, Crc};
use sluicegate_lua::Keys;

/// A hash slot, below [`Slot::COUNT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(u16);

impl Slot {
    /// How many slots a cluster has.
    pub(crate) const COUNT: u16 = 16_384;

    /// The slot of a policy and subject: CRC16 of the hash tag modulo 16384 (Redis Cluster specification, "Hash tags" and
    /// "Key distribution model").
    pub(crate) fn of(keys: &Keys) -> Self {
        const CRC16: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);
        Self(CRC16.checksum(keys.hash_tag().as_bytes()) % Self::COUNT)
    }

    /// The slot's place in a list of all of them.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_lua::KeyPrefix;
    use sluicegate_wire::Subject;

    use super::*;

    /// As `CLUSTER KEYSLOT` of Redis 7.0 says.
    #[test]
    fn slots_are_those_of_redis() {
        let slot = |policy: &str, subject: &str| {
            let subject = Subject::text(subject).encode(None);
            Slot::of(&KeyPrefix::default().keys(&policy.parse().unwrap(), &subject)).index()
        };
        assert_eq!(slot("login", "203.0.113.7"), 3_151);
        assert_eq!(slot("api", "user-42"), 15_557);
        assert_ne!(slot("api", "user-42"), slot("api", "user-43"));
    }
}
