//! The slots of all subjects, in a table that the proxy's workers share.
//!
//! Slots come in sets of a few, and one shared value is a whole set: whatever is done is one compare-and-swap over all
//! that it depends on, so no token is served twice. A subject belongs to the set that its hash names. Where that is full
//! of leases of others it has none, and is asked about as without.

use super::slot::{Batch, KnownLimit, Slot};
use crate::shared::{SharedData, change, hash, read_numbers, write_numbers};

/// Sets of the table.
const SETS: u64 = 256;
/// Slots of one set. A hot subject's is read and written with each of its requests.
const WAYS: usize = 4;

/// Lets `step` change the slot of a subject as it is now; false when there is none, or it could not be written. A new one
/// is made where `make` says so, in place of the one that was unused for longest.
pub(super) fn visit(shared: &dyn SharedData, id: &[u8], make: Option<u64>, step: &mut dyn FnMut(&mut Slot)) -> bool {
    let mut found = false;
    let usable = change_set(shared, set_of(id), &mut |slots| {
        if !slots.iter().any(|slot| slot.id == id)
            && let Some(now_ms) = make
        {
            if slots.len() >= WAYS {
                let free = slots.iter().enumerate().filter(|(_, slot)| slot.is_free(now_ms));
                let oldest = free.min_by_key(|(_, slot)| slot.last_ms).map(|(at, _)| at);
                oldest.map(|at| slots.swap_remove(at));
            }
            if slots.len() < WAYS {
                slots.push(Slot { id: id.to_vec(), ..Slot::default() });
            }
        }
        let slot = slots.iter_mut().find(|slot| slot.id == id);
        found = slot.is_some();
        slot.map(&mut *step).is_some()
    });
    found && usable
}

/// The set of a subject.
pub(super) fn set_of(id: &[u8]) -> u32 {
    hash(id).checked_rem(SETS).and_then(|set| u32::try_from(set).ok()).unwrap_or(0)
}

/// Lets `step` change the slots of a set as they are now, and say whether it did; false when they could not be read or
/// written.
pub(super) fn change_set(shared: &dyn SharedData, set: u32, step: &mut dyn FnMut(&mut Vec<Slot>) -> bool) -> bool {
    // The layout is part of the key: other values are never read as this table's.
    change(shared, &format!("lease.1.{set}"), &mut |stored| {
        // Only a foreign writer makes bytes that are no set; they are then nobody's tokens.
        let mut slots = stored.and_then(|stored| decode(&stored)).unwrap_or_default();
        step(&mut slots).then(|| encode(&slots))
    })
}

/// For each slot two texts, each after its length in two bytes, and its numbers.
fn encode(slots: &[Slot]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for slot in slots {
        let [first, second] = &slot.batches;
        let limit = &slot.limit;
        for text in [&slot.id, &limit.name] {
            bytes.extend(u16::try_from(text.len()).unwrap_or(0).to_le_bytes());
            bytes.extend_from_slice(text);
        }
        write_numbers(
            &mut bytes,
            &[
                slot.counting_since_ms,
                slot.used,
                slot.used_before,
                slot.last_ms,
                slot.asked_until_ms,
                first.tokens,
                first.since_ms,
                first.until_ms,
                second.tokens,
                second.since_ms,
                second.until_ms,
                limit.capacity,
                limit.window_ms,
                limit.remaining,
                limit.next_ms,
                limit.full_ms,
                limit.at_ms,
            ],
        );
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> Option<Vec<Slot>> {
    let mut slots = Vec::new();
    while !bytes.is_empty() {
        let (id, name) = (text(&mut bytes)?, text(&mut bytes)?);
        let [counting_since_ms, used, used_before, last_ms, asked_until_ms] = read_numbers(&mut bytes)?;
        let mut batch = || {
            let [tokens, since_ms, until_ms] = read_numbers(&mut bytes)?;
            Some(Batch { tokens, since_ms, until_ms })
        };
        let batches = [batch()?, batch()?];
        let [capacity, window_ms, remaining, next_ms, full_ms, at_ms] = read_numbers(&mut bytes)?;
        let limit = KnownLimit { name, capacity, window_ms, remaining, next_ms, full_ms, at_ms };
        slots.push(Slot { id, counting_since_ms, used, used_before, last_ms, asked_until_ms, batches, limit });
    }
    Some(slots)
}

fn text(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    *bytes = rest;
    Some(text.to_vec())
}
