//! From `rate_limit_service` as written to mappings of policies that are there.

use std::sync::Arc;

use crate::config::spanned::Spanned;
use sluicegate_lua::Policy;

use super::{
    Entry, KeyPart, Mapping, Outcome, RateLimitService, Value,
    raw::{RawEntry, RawKeyPart, RawMapping},
};
use crate::config::{Policies, check::Checker, raw::RawConfig};

impl Checker<'_> {
    /// The mappings without those that are at fault. `policies` are missing where they are at fault themselves.
    pub(in crate::config) fn rate_limit_service(
        &mut self,
        config: &RawConfig,
        policies: Option<&Policies>,
    ) -> RateLimitService {
        let Some(raw) = &config.rate_limit_service else { return RateLimitService::default() };
        let mut service = RateLimitService::default();
        if let Some(unknown) = &raw.unknown_domain {
            match &*unknown.value {
                "allow" => {}
                "error" => service.refuse_unknown_domain = true,
                _ => {
                    let _: Option<()> =
                        self.fault("rate_limit_service.unknown_domain", unknown, "must be allow or error");
                }
            }
        }
        if raw.domains.value.is_empty() {
            let reason = "is empty; add the domain of Envoy's filter, or leave rate_limit_service out";
            let _: Option<()> = self.fault("rate_limit_service.domains", &raw.domains, reason);
        }
        for (domain, raw) in &raw.domains.value {
            let path = format!("rate_limit_service.domains.{domain}");
            if domain.is_empty() {
                let _: Option<()> = self.fault(&path, raw, "a domain has a name: that of Envoy's filter");
            }
            let mappings = self.mappings(&path, &raw.value, config, policies);
            service.domains.insert(domain.clone(), mappings);
        }
        service
    }

    fn mappings(
        &mut self,
        path: &str,
        raw: &[Spanned<RawMapping>],
        config: &RawConfig,
        policies: Option<&Policies>,
    ) -> Vec<Mapping> {
        let mut mappings = Vec::new();
        let mut earlier: Vec<Vec<Entry>> = Vec::new();
        for (index, raw) in raw.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let entries = self.entries(&path, &raw.value);
            if let Some(covering) = earlier.iter().position(|earlier| Mapping::covers(earlier, &entries)) {
                let reason = format!("is never reached, since [{covering}] matches all of it; put this one first");
                let _: Option<()> = self.fault(&format!("{path}.match"), &raw.value.entries, reason);
            }
            let outcome = self.outcome(&path, raw, &entries, config, policies);
            mappings.extend(outcome.map(|outcome| Mapping { entries: entries.clone(), outcome }));
            earlier.push(entries);
        }
        mappings
    }

    fn entries(&mut self, path: &str, raw: &RawMapping) -> Vec<Entry> {
        let path = format!("{path}.match");
        if raw.entries.value.is_empty() {
            let reason = "is empty; name the entries of a descriptor, such as [ remote_address ]";
            let _: Option<()> = self.fault(&path, &raw.entries, reason);
        }
        let each = raw.entries.value.iter().enumerate();
        each.filter_map(|(index, entry)| self.entry(&format!("{path}[{index}]"), entry)).collect()
    }

    fn entry(&mut self, path: &str, raw: &Spanned<RawEntry>) -> Option<Entry> {
        let RawEntry { key, value } = &raw.value;
        let value = match value {
            None => Value::Any,
            Some(value) => match value.strip_suffix('*') {
                None => Value::Exact(value.clone()),
                Some("") => Value::Any,
                Some(prefix) => Value::Prefix(prefix.to_owned()),
            },
        };
        if key.is_empty() {
            return self.fault(path, raw, "an entry has a key, such as remote_address");
        }
        Some(Entry { key: key.clone(), value })
    }

    fn outcome(
        &mut self,
        path: &str,
        raw: &Spanned<RawMapping>,
        entries: &[Entry],
        config: &RawConfig,
        policies: Option<&Policies>,
    ) -> Option<Outcome> {
        let RawMapping { policy, key, shadow, unlimited, .. } = &raw.value;
        let is_unlimited = unlimited.as_ref().is_some_and(|unlimited| unlimited.value);
        let Some(name) = policy else {
            if is_unlimited && key.is_none() && shadow.is_none() {
                return Some(Outcome::Unlimited);
            }
            let reason = "needs a policy; add policy: and a name of policies, or unlimited: true alone";
            return self.fault(path, raw, reason);
        };
        if is_unlimited {
            return self.fault(path, raw, "is unlimited and has a policy; keep one of them");
        }
        let key = self.key(path, key.as_ref(), entries);
        let policy = self.policy_of(&format!("{path}.policy"), name, config, policies);
        let shadow = shadow.as_ref().is_some_and(|shadow| shadow.value);
        Some(Outcome::Limited { policy: policy?, key: key?, shadow })
    }

    fn policy_of(
        &mut self,
        path: &str,
        name: &Spanned<String>,
        config: &RawConfig,
        policies: Option<&Policies>,
    ) -> Option<Arc<Policy>> {
        // A policy that is there but at fault is told of as such.
        let there = &config.policies.value;
        if !there.keys().any(|known| known.as_str() == name.value) {
            let names: Vec<_> = there.keys().map(|name| name.as_str()).collect();
            let reason = format!("there is no policy {:?}; there are: {}", name.value, names.join(", "));
            return self.fault(path, name, reason);
        }
        policies?.get(&name.value).cloned()
    }

    /// By default what tells the descriptors of a mapping apart, or all of it where they are all alike.
    fn key(
        &mut self,
        path: &str,
        raw: Option<&Spanned<Vec<Spanned<RawKeyPart>>>>,
        entries: &[Entry],
    ) -> Option<Vec<KeyPart>> {
        let path = format!("{path}.key");
        let Some(raw) = raw else {
            let fixed = |entry: &Entry| matches!(entry.value, Value::Exact(_));
            let all_fixed = entries.iter().all(fixed);
            let telling = entries.iter().enumerate().filter(|(_, entry)| all_fixed || !fixed(entry));
            return Some(telling.map(|(entry, _)| KeyPart { entry, secret: false }).collect());
        };
        if raw.value.is_empty() {
            return self.fault(&path, raw, "is empty; name entries of match, or leave key out");
        }
        let each = raw.value.iter().enumerate();
        let parts: Vec<_> =
            each.map(|(index, part)| self.key_part(&format!("{path}[{index}]"), part, entries)).collect();
        parts.into_iter().collect()
    }

    fn key_part(&mut self, path: &str, raw: &Spanned<RawKeyPart>, entries: &[Entry]) -> Option<KeyPart> {
        let RawKeyPart { entry, secret } = &raw.value;
        let mut named = entries.iter().enumerate().filter(|(_, candidate)| candidate.key == *entry);
        match (named.next(), named.next()) {
            (Some((entry, _)), None) => Some(KeyPart { entry, secret: *secret }),
            (None, _) => {
                let keys: Vec<_> = entries.iter().map(|entry| &*entry.key).collect();
                let reason = format!("match has no entry {entry:?}; it has: {}", keys.join(", "));
                self.fault(path, raw, reason)
            }
            (Some(_), Some(_)) => {
                let reason = format!(
                    "match has {entry:?} twice; leave key out, or give the entries keys of their own (descriptor_key \
                     in Envoy)"
                );
                self.fault(path, raw, reason)
            }
        }
    }
}
