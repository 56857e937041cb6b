//! Policies: from the file as written to limits that can be kept.

use std::{collections::BTreeMap, fmt, time::Duration};

use crate::config::spanned::Spanned;
use sluicegate_lua::{Ban, Bucket, BucketError, Every, Limit, Policy, PolicyError, Quota, QuotaError, Refill, Rule};
use sluicegate_wire::Name;

use super::{
    Policies,
    check::Checker,
    hint::did_you_mean,
    raw::{RawBan, RawLimit, RawPolicy},
};

impl Checker<'_> {
    pub(super) fn policies(&mut self, raw: &Spanned<BTreeMap<Name, RawPolicy>>) -> Option<Policies> {
        if raw.value.is_empty() {
            return self.fault("policies", raw, "is empty; add a policy, or there is nothing to limit");
        }
        // Not `filter_map`: each policy is looked at, also after a faulty one.
        let policies: Vec<_> = raw.value.iter().map(|(name, policy)| self.policy(name, policy)).collect();
        policies.into_iter().collect()
    }

    fn policy(&mut self, name: &Name, raw: &RawPolicy) -> Option<Policy> {
        let limits = self.limits(&format!("policies.{name}.limits"), &raw.limits);
        let ban = raw.ban.as_ref().map(|ban| self.ban(&format!("policies.{name}.ban"), ban));
        let policy = Policy::new(name.clone(), limits?);
        let mut policy = self.good(&format!("policies.{name}.limits"), &raw.limits, policy)?;
        if let Some(ban) = ban {
            policy = policy.with_ban(ban?);
        }
        Some(if raw.overrides { policy.with_overrides() } else { policy })
    }

    fn limits(&mut self, path: &str, raw: &Spanned<Vec<Spanned<RawLimit>>>) -> Option<Vec<Limit>> {
        let each = raw.value.iter().enumerate();
        let limits: Vec<_> =
            each.clone().map(|(index, limit)| self.limit(&format!("{path}[{index}]"), limit)).collect();
        for (index, limit) in each {
            let name = &limit.value.name;
            if raw.value.iter().take(index).any(|earlier| earlier.value.name.value == name.value) {
                let reason = format!("{} is there twice; give each limit of a policy its own name", name.value);
                return self.fault(&format!("{path}[{index}].name"), name, reason);
            }
        }
        limits.into_iter().collect()
    }

    fn limit(&mut self, path: &str, raw: &Spanned<RawLimit>) -> Option<Limit> {
        let RawLimit { name, capacity, refill, per, interval, quota, every, time_zone } = &raw.value;
        let rule = if let Some(quota) = quota {
            self.none_of(
                path,
                "a quota counts in calendar windows; keep quota, every and time_zone alone",
                [
                    ("capacity", capacity.as_ref().map(place)),
                    ("refill", refill.as_ref().map(place)),
                    ("per", per.as_ref().map(place)),
                    ("interval", interval.as_ref().map(place)),
                ],
            )?;
            self.quota(path, raw, quota)?
        } else {
            self.none_of(
                path,
                "belongs to a quota; add quota: and leave out capacity, refill and per",
                [("every", every.as_ref().map(place)), ("time_zone", time_zone.as_ref().map(place))],
            )?;
            self.bucket(path, raw)?
        };
        Some(Limit { name: name.value.clone(), rule })
    }

    fn bucket(&mut self, path: &str, raw: &Spanned<RawLimit>) -> Option<Rule> {
        let RawLimit { capacity, refill, per, interval, .. } = &raw.value;
        let capacity = self.given(path, "capacity", raw, capacity.as_ref(), "the most tokens it holds, such as 10");
        let refill = self.given(path, "refill", raw, refill.as_ref(), "the tokens of each period, such as 10");
        let per = self.given(path, "per", raw, per.as_ref(), "the period of the refill, such as 1s");
        let (capacity, refill, per) = (capacity?, refill?, per?);
        let per_path = format!("{path}.per");
        let per_ms = millis(self.duration(&per_path, Some(per), Duration::ZERO)?);
        let interval = interval.as_ref().is_some_and(|interval| interval.value);
        let mode = if interval { Refill::Interval } else { Refill::Greedy };
        match Bucket::new(capacity.value, refill.value, per_ms, mode) {
            Ok(bucket) => Some(bucket.into()),
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

    fn quota(&mut self, path: &str, raw: &Spanned<RawLimit>, quota: &Spanned<u64>) -> Option<Rule> {
        let RawLimit { every, time_zone, .. } = &raw.value;
        let every = self.given(path, "every", raw, every.as_ref(), "minute, hour, day, week or month")?;
        let every_path = format!("{path}.every");
        let window = every.value.parse().map_err(|error: QuotaError| {
            let hint = did_you_mean(&every.value, Every::ALL.map(Every::as_str));
            format!("{error}{hint}")
        });
        let window = self.good(&every_path, every, window)?;
        let zone = time_zone.as_ref().map_or("UTC", |zone| &zone.value);
        match Quota::new(quota.value, window, zone) {
            Ok(quota) => Some(quota.into()),
            Err(error @ QuotaError::Zone(_)) => {
                self.fault(&format!("{path}.time_zone"), time_zone.as_ref().unwrap_or(every), error)
            }
            Err(error) => self.fault(&format!("{path}.quota"), quota, error),
        }
    }

    fn ban(&mut self, path: &str, raw: &Spanned<RawBan>) -> Option<Ban> {
        let RawBan { after, within, length } = &raw.value;
        let (within_path, for_path) = (format!("{path}.within"), format!("{path}.for"));
        let within_ms = self.duration(&within_path, Some(within), Duration::ZERO).map(millis);
        let for_ms = self.duration(&for_path, Some(length), Duration::ZERO).map(millis);
        match Ban::new(after.value, within_ms?, for_ms?) {
            Ok(ban) => Some(ban),
            Err(error @ PolicyError::BanAfter(_)) => self.fault(&format!("{path}.after"), after, error),
            Err(PolicyError::BanTime("within", _)) => self.fault(&within_path, within, "must be from 1ms to 366d"),
            Err(_) => self.fault(&for_path, length, "must be from 1ms to 366d"),
        }
    }

    fn given<'r, T>(
        &mut self,
        path: &str,
        name: &str,
        limit: &Spanned<RawLimit>,
        field: Option<&'r Spanned<T>>,
        example: impl fmt::Display,
    ) -> Option<&'r Spanned<T>> {
        field.or_else(|| self.fault(&format!("{path}.{name}"), limit, format_args!("is missing; add {example}")))
    }

    /// Fields of the other kind of limit would be ignored, which nobody who wrote them expects.
    fn none_of<const N: usize>(
        &mut self,
        path: &str,
        reason: &str,
        fields: [(&str, Option<Spanned<()>>); N],
    ) -> Option<()> {
        for (name, field) in fields {
            if let Some(field) = field {
                return self.fault(&format!("{path}.{name}"), &field, reason);
            }
        }
        Some(())
    }
}

/// Where a field is, whatever it holds.
fn place<T>(field: &Spanned<T>) -> Spanned<()> {
    Spanned { value: (), referenced: field.referenced }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
