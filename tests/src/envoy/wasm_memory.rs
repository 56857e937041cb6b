//! The linear memories of V8, found in a process's memory map.

use anyhow::{Context as _, Result};

/// V8 reserves the address space of a memory, with guards, in one go: 8 GiB and more, of which the first pages can be
/// used. Nothing else of Envoy is of that size.
const RESERVED_KIB: u64 = 4 << 20;

/// One mapping of `/proc/PID/maps`.
struct Mapping<'a> {
    start_kib: u64,
    end_kib: u64,
    permissions: &'a str,
}

impl Mapping<'_> {
    const fn size_kib(&self) -> u64 {
        self.end_kib - self.start_kib
    }
}

/// The size in KiB of each mapping that can be used and that such a reservation follows.
pub(super) fn sizes_kib(map: &str) -> Result<Vec<u64>> {
    let mappings = map.lines().map(mapping).collect::<Option<Vec<_>>>().context("a mapping of another form")?;
    let is_memory = |pair: &&[Mapping<'_>]| {
        let [usable, reserved] = pair else { return false };
        usable.permissions.starts_with("rw-p")
            && reserved.permissions.starts_with("---p")
            && usable.end_kib == reserved.start_kib
            && reserved.size_kib() >= RESERVED_KIB
    };
    Ok(mappings.windows(2).filter(is_memory).map(|pair| pair[0].size_kib()).collect())
}

/// `7f52c6e70000-7f52c6f90000 rw-p …`
fn mapping(line: &str) -> Option<Mapping<'_>> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let kib = |address| Some(u64::from_str_radix(address, 16).ok()? >> 10);
    Some(Mapping { start_kib: kib(start)?, end_kib: kib(end)?, permissions: rest })
}
