//! From the file as written to a configuration: every value is looked at, and all that are wrong are told at once.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde_saphyr::Spanned;
use sluicegate_lua::{Bucket, BucketError, KeyPrefix, Limit, Policy, Refill};
use sluicegate_wire::Name;

use super::{
    Address, Admin, Config, Policies, Secret, Store, StoreUrl, duration,
    error::Fault,
    raw::{RawConfig, RawLimit, RawPolicy, RawStore},
    substitute::substitute,
};

/// The configuration, or all of its faults.
pub(super) fn check(raw: &RawConfig, environment: &dyn Fn(&str) -> Option<String>) -> Result<Config, Vec<Fault>> {
    let mut checker = Checker { environment, faults: Vec::new() };
    let listen = checker.address("listen", raw.listen.as_ref(), "127.0.0.1:8080");
    let admin = checker.admin(raw, listen.as_ref());
    let store = checker.store(&raw.store);
    let drain = checker.duration("drain", raw.drain.as_ref(), Duration::from_secs(5));
    let policies = checker.policies(&raw.policies);
    match (listen, admin, store, drain, policies) {
        (Some(listen), Some(admin), Some(store), Some(drain), Some(policies)) if checker.faults.is_empty() => {
            Ok(Config { listen, admin, store, drain, policies })
        }
        _ => Err(checker.faults),
    }
}

/// Collects faults. Each check is none when it found one.
struct Checker<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    faults: Vec<Fault>,
}

impl Checker<'_> {
    fn admin(&mut self, raw: &RawConfig, data: Option<&Address>) -> Option<Admin> {
        let listen = self.address("admin.listen", raw.admin.listen.as_ref(), "127.0.0.1:8081");
        let token = match &raw.admin.token {
            None => None,
            Some(token) => Some(Secret::new(self.not_empty("admin.token", token)?)),
        };
        let listen = listen?;
        if let Some(written) = &raw.admin.listen
            && token.is_none()
            && !listen.is_local()
        {
            let reason = "other machines can reach this address, so admin.token is required; set it, for example \
                          token: ${SLUICEGATE_ADMIN_TOKEN}";
            return self.fault("admin.listen", written, reason);
        }
        // The two defaults differ, so one of them was written.
        if let Some(written) = raw.admin.listen.as_ref().or(raw.listen.as_ref())
            && data.is_some_and(|data| data.collides(&listen))
        {
            let reason = format!("listen and admin.listen are both {listen}; give each its own address");
            return self.fault("", written, reason);
        }
        Some(Admin { listen, token })
    }

    fn store(&mut self, raw: &RawStore) -> Option<Store> {
        let url = self.text("store.url", &raw.url);
        let url = url.and_then(|url| self.good("store.url", &raw.url, StoreUrl::new(url)));
        let timeout = self.duration("store.timeout", raw.timeout.as_ref(), Duration::from_millis(20));
        let timeout = match &raw.timeout {
            Some(written) if timeout == Some(Duration::ZERO) => {
                self.fault("store.timeout", written, "is no time at all; use 20ms or what the store needs")
            }
            _ => timeout,
        };
        let prefix = match &raw.prefix {
            None => Some(KeyPrefix::default()),
            Some(written) => {
                let text = self.text("store.prefix", written)?;
                self.good("store.prefix", written, Name::try_from(text)).map(KeyPrefix::new)
            }
        };
        Some(Store { url: url?, timeout: timeout?, prefix: prefix? })
    }

    fn policies(&mut self, raw: &Spanned<BTreeMap<Name, RawPolicy>>) -> Option<Policies> {
        if raw.value.is_empty() {
            return self.fault("policies", raw, "is empty; add a policy, or there is nothing to limit");
        }
        // Not `filter_map`: each policy is looked at, also after a faulty one.
        let policies: Vec<_> = raw.value.iter().map(|(name, policy)| self.policy(name, policy)).collect();
        policies.into_iter().collect()
    }

    fn policy(&mut self, name: &Name, raw: &RawPolicy) -> Option<Policy> {
        let path = format!("policies.{name}.limits");
        let written = &raw.limits.value;
        let each = written.iter().enumerate();
        let limits: Vec<_> =
            each.clone().map(|(index, limit)| self.limit(&format!("{path}[{index}]"), limit)).collect();
        for (index, limit) in each {
            let name = &limit.value.name;
            if written.iter().take(index).any(|earlier| earlier.value.name.value == name.value) {
                let reason = format!("{} is there twice; give each limit of a policy its own name", name.value);
                return self.fault(&format!("{path}[{index}].name"), name, reason);
            }
        }
        let limits = limits.into_iter().collect::<Option<_>>()?;
        self.good(&path, &raw.limits, Policy::new(name.clone(), limits))
    }

    fn limit(&mut self, path: &str, raw: &Spanned<RawLimit>) -> Option<Limit> {
        let RawLimit { name, capacity, refill, per, interval } = &raw.value;
        let per_path = format!("{path}.per");
        let period = self.duration(&per_path, Some(per), Duration::ZERO)?;
        let per_ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        let mode = if *interval { Refill::Interval } else { Refill::Greedy };
        match Bucket::new(capacity.value, refill.value, per_ms, mode) {
            Ok(bucket) => Some(Limit { name: name.value.clone(), bucket }),
            Err(BucketError::NoCapacity) => {
                self.fault(&format!("{path}.capacity"), capacity, "is 0, which denies everything; use at least 1")
            }
            Err(BucketError::NoRefill) => {
                self.fault(&format!("{path}.refill"), refill, "is 0, so the bucket never refills; use at least 1")
            }
            Err(BucketError::Period { .. }) => self.fault(&per_path, per, "must be from 1ms to 366d"),
            Err(error @ (BucketError::Inexact { .. } | BucketError::TooSlow { .. })) => self.fault(path, raw, error),
        }
    }

    fn address(&mut self, path: &str, field: Option<&Spanned<String>>, default: &str) -> Option<Address> {
        match field {
            None => default.parse().ok(),
            Some(field) => {
                let text = self.text(path, field)?;
                self.good(path, field, text.parse())
            }
        }
    }

    fn duration(&mut self, path: &str, field: Option<&Spanned<String>>, default: Duration) -> Option<Duration> {
        let Some(field) = field else { return Some(default) };
        let text = self.text(path, field)?;
        self.good(path, field, duration::parse(&text))
    }

    fn not_empty(&mut self, path: &str, field: &Spanned<String>) -> Option<String> {
        let text = self.text(path, field)?;
        if text.trim().is_empty() {
            return self.fault(path, field, "is empty; give it a value or leave it out");
        }
        Some(text)
    }

    fn text(&mut self, path: &str, field: &Spanned<String>) -> Option<String> {
        self.good(path, field, substitute(&field.value, self.environment))
    }

    fn good<T, F, E: fmt::Display>(&mut self, path: &str, field: &Spanned<F>, value: Result<T, E>) -> Option<T> {
        value.map_or_else(|error| self.fault(path, field, error), Some)
    }

    fn fault<T, F>(&mut self, path: &str, field: &Spanned<F>, reason: impl fmt::Display) -> Option<T> {
        self.faults.push(Fault::new(field.referenced, path, reason));
        None
    }
}
