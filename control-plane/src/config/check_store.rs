//! The store: what its URL and its other fields say must fit together.

use std::{num::NonZeroUsize, ops::RangeInclusive, time::Duration};

use crate::config::spanned::Spanned;
use sluicegate_lua::KeyPrefix;
use sluicegate_wire::Name;

use super::{Store, check::Checker, raw::RawStore, store_url::StoreUrl};

const TIMEOUT: Duration = Duration::from_millis(20);
/// Enough that one lost connection is not the end of all calls under way.
const CONNECTIONS: usize = 2;
const MAX_CONNECTIONS: u32 = 64;
/// Far above what one Redis answers within a deadline, so that only a flood meets it.
const MAX_IN_FLIGHT: usize = 10_000;
const MOST_IN_FLIGHT: u32 = 1_000_000;

impl Checker<'_> {
    pub(super) fn store(&mut self, raw: &RawStore) -> Option<Store> {
        let url = self.text("store.url", &raw.url);
        let url = url.and_then(|url| self.good("store.url", &raw.url, StoreUrl::parse(&url)));
        let login = self.store_login(raw, url.as_ref());
        let sentinel_login = self.sentinel_login(raw.sentinel.as_ref(), url.as_ref());
        let tls = self.tls(raw.tls.as_ref(), url.as_ref());
        let timeout = self.store_timeout(raw.timeout.as_ref());
        let prefix = self.prefix(raw.prefix.as_ref());
        let connections = self.number("store.connections", raw.connections.as_ref(), CONNECTIONS, 1..=MAX_CONNECTIONS);
        let max_in_flight =
            self.number("store.max_in_flight", raw.max_in_flight.as_ref(), MAX_IN_FLIGHT, 1..=MOST_IN_FLIGHT);
        let StoreUrl { topology, database, .. } = url?;
        Some(Store {
            topology,
            database,
            login: login?,
            sentinel_login: sentinel_login?,
            tls: tls?,
            timeout: timeout?,
            prefix: prefix?,
            connections: connections?,
            max_in_flight: max_in_flight?,
        })
    }

    fn store_timeout(&mut self, field: Option<&Spanned<String>>) -> Option<Duration> {
        let timeout = self.duration("store.timeout", field, TIMEOUT);
        match field {
            Some(written) if timeout == Some(Duration::ZERO) => {
                self.fault("store.timeout", written, "is no time at all; use 20ms or what the store needs")
            }
            _ => timeout,
        }
    }

    fn prefix(&mut self, field: Option<&Spanned<String>>) -> Option<KeyPrefix> {
        let Some(field) = field else { return Some(KeyPrefix::default()) };
        let text = self.text("store.prefix", field)?;
        self.good("store.prefix", field, Name::try_from(text)).map(KeyPrefix::new)
    }

    pub(super) fn number(
        &mut self,
        path: &str,
        field: Option<&Spanned<u32>>,
        default: usize,
        range: RangeInclusive<u32>,
    ) -> Option<NonZeroUsize> {
        let Some(field) = field else { return NonZeroUsize::new(default) };
        let number = if range.contains(&field.value) { usize::try_from(field.value).ok() } else { None };
        let reason = || format!("must be from {} to {}", range.start(), range.end());
        self.good(path, field, number.and_then(NonZeroUsize::new).ok_or_else(reason))
    }
}
