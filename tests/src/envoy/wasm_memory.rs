//! The linear memories of V8, found in a process's memory map.

use anyhow::{Context as _, Result};

/// V8 reserves the address space of a memory, with guards, in one go: 8 GiB and more, of which the first pages can be
/// used. Nothing else of Envoy is of that size.
const RESERVED_KIB: u64 = 4 << 20;
/// A page of WebAssembly.
const PAGE_KIB: u64 = 64;

/// One mapping of `/proc/PID/smaps`.
struct Mapping {
    start_kib: u64,
    end_kib: u64,
    permissions: String,
    resident_kib: u64,
}

/// The resident memory in KiB of each mapping that can be used and that such a reservation follows.
pub(super) fn resident_kib(map: &str) -> Result<Vec<u64>> {
    let mappings = mappings(map)?;
    let is_memory = |pair: &&[Mapping]| {
        let [usable, reserved] = pair else { return false };
        let size = |mapping: &Mapping| mapping.end_kib - mapping.start_kib;
        usable.permissions.starts_with("rw-p")
            && reserved.permissions.starts_with("---p")
            && usable.end_kib == reserved.start_kib
            && size(usable) % PAGE_KIB == 0
            && size(reserved) >= RESERVED_KIB
    };
    Ok(mappings.windows(2).filter(is_memory).map(|pair| pair[0].resident_kib).collect())
}

fn mappings(map: &str) -> Result<Vec<Mapping>> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in map.lines() {
        if let Some(size) = line.strip_prefix("Rss:") {
            let mapping = mappings.last_mut().context("a size of no mapping")?;
            mapping.resident_kib = size.trim().trim_end_matches(" kB").parse()?;
        } else if let Some((start, rest)) = line.split_once('-')
            && let Ok(start) = u64::from_str_radix(start, 16)
        {
            let mut words = rest.split(' ');
            let end = u64::from_str_radix(words.next().context("a mapping without an end")?, 16)?;
            let permissions = words.next().context("a mapping without permissions")?.to_owned();
            mappings.push(Mapping { start_kib: start >> 10, end_kib: end >> 10, permissions, resident_kib: 0 });
        }
    }
    Ok(mappings)
}
