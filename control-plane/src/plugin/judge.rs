//! One configuration of the filter: whether the filter takes it, and whether the service can answer it.

use sluicegate_filter_core::{
    Config as FilterConfig, ConfigError as FilterError, CostChoice, Limit, PolicyChoice, Rule,
};
use sluicegate_lua::{Policy, Rule as Bound};
use sluicegate_wire::{Name, Part, Pepper};

use super::{Plugin, Report, fault};
use crate::{
    config::{Config, ConfigError, did_you_mean},
    limiter::Unleasable,
};

pub(super) struct Judge<'a> {
    pub(super) file: &'a str,
    pub(super) plugin: &'a Plugin<'a>,
    pub(super) service: Option<&'a Config>,
}

impl Judge<'_> {
    pub(super) fn judge(&self, report: &mut Report) {
        report.plugins += 1;
        let json = self.plugin.tree.to_json().to_string();
        match FilterConfig::parse(json.as_bytes()) {
            Ok(filter) => {
                report.rules += filter.rules.len();
                report.limits += filter.rules.iter().map(|rule| rule.limits.len()).sum::<usize>();
                if let Some(service) = self.service {
                    self.compare(&filter, service, report);
                }
            }
            // Only what isn't JSON has no field.
            Err(FilterError::Field { path, problem }) => self.refused(&path, &problem, report),
            Err(error) => self.error(report, "", error.to_string()),
        }
    }

    /// The filter's own words, and what may have been meant of the names in them.
    fn refused(&self, path: &str, problem: &str, report: &mut Report) {
        let unknown = problem.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
        let (written, known) = match unknown {
            Some((field, known)) => (field, known),
            None => (self.text_at(path), problem),
        };
        let hint = did_you_mean(written, known.split('`').skip(1).step_by(2));
        self.error(report, path, format!("{problem}{hint}"));
    }

    /// The text that stands at a path, or nothing.
    fn text_at(&self, path: &str) -> &str {
        self.plugin.tree.find(path).tree.text().unwrap_or_default()
    }

    fn compare(&self, filter: &FilterConfig, service: &Config, report: &mut Report) {
        self.peppers(filter, service, report);
        for (index, rule) in filter.rules.iter().enumerate() {
            for (nth, limit) in rule.limits.iter().enumerate() {
                self.limit(&format!("rules[{index}].limits[{nth}]"), rule, limit, service, report);
            }
            if rule.only_status.is_some() && !service.allows_refunds(&service.listen) {
                let name = &rule.name;
                let reason = format!(
                    "rule {name} gives back, which the service refuses, so everything stays charged; set refunds: true there"
                );
                self.warning(report, &format!("rules[{index}].charge"), reason);
            }
        }
        if filter.leases() && !service.allows_refunds(&service.listen) {
            let leases = |rule: &Rule| rule.limits.iter().position(|limit| limit.lease.is_some());
            let first = filter.rules.iter().enumerate().find_map(|(index, rule)| Some((index, leases(rule)?)));
            if let Some((index, nth)) = first {
                let reason = "the service allows no refunds, and without them no leases, so each request is asked about; \
                              set refunds: true there";
                self.warning(report, &format!("rules[{index}].limits[{nth}].lease"), reason.to_owned());
            }
        }
    }

    fn limit(&self, path: &str, rule: &Rule, limit: &Limit, service: &Config, report: &mut Report) {
        let policies: Vec<(String, &Name)> = match &limit.policy {
            PolicyChoice::Fixed(name) => vec![(format!("{path}.policy"), name)],
            PolicyChoice::Chosen { map, default, .. } => {
                let of_map = map.0.iter().map(|(value, name)| (format!("{path}.policy.map.{value}"), name));
                of_map.chain([(format!("{path}.policy.default"), default)]).collect()
            }
        };
        for (path, name) in policies {
            match service.policies.get(name.as_str()) {
                Some(policy) => {
                    self.cost(&path, rule, limit, policy, report);
                    self.lease(&path, rule, limit, policy, report);
                }
                None => {
                    let known = service.policies.iter().map(|policy| policy.name().as_str());
                    let hint = did_you_mean(name.as_str(), known);
                    self.error(report, &path, format!("rule {}: the service has no policy {name}{hint}", rule.name));
                }
            }
        }
    }

    /// A cost above what a limit holds is denied whenever it is asked for.
    fn cost(&self, path: &str, rule: &Rule, limit: &Limit, policy: &Policy, report: &mut Report) {
        let CostChoice::Fixed(cost) = &limit.cost else { return };
        let least = policy.limits().iter().min_by_key(|limit| holds(&limit.rule));
        if let Some(least) = least.filter(|least| holds(&least.rule) < cost.tokens() && !policy.overrides()) {
            let reason = format!(
                "rule {}: a cost of {} is more than limit {} of policy {} ever holds ({}), so every request is rejected",
                rule.name,
                cost.tokens(),
                least.name,
                policy.name(),
                holds(&least.rule)
            );
            self.warning(report, path, reason);
        }
    }

    /// The service refuses leases from some policies, and the filter then asks about each request.
    fn lease(&self, path: &str, rule: &Rule, limit: &Limit, policy: &Policy, report: &mut Report) {
        let Some(lease) = limit.lease else { return };
        let (rule, name) = (&rule.name, policy.name());
        if let Some(why) = Unleasable::why(policy) {
            self.error(report, path, format!("rule {rule}: policy {name} {why}; take lease off this limit"));
            return;
        }
        let capacity = policy.limits().iter().map(|limit| holds(&limit.rule)).min().unwrap_or(u64::MAX);
        if lease.tokens.get() > capacity {
            let reason = format!(
                "rule {rule}: a lease of {} tokens is more than policy {name} ever holds ({capacity}), so one proxy may hold \
                 all of them while others deny",
                lease.tokens.get()
            );
            self.warning(report, path, reason);
        }
    }

    fn peppers(&self, filter: &FilterConfig, service: &Config, report: &mut Report) {
        let path = "key_pepper";
        let secret = |rule: &Rule| rule.limits.iter().any(|limit| limit.key.parts().iter().any(|part| part.secret));
        match (&filter.key_pepper, &service.key_pepper) {
            (Some(filter), Some(service)) if !same(filter, service) => {
                let reason = "is not the service's key_pepper: secrets have other digests there; give both the same";
                self.error(report, path, reason.to_owned());
            }
            (None, Some(_)) if filter.rules.iter().any(|rule| secret(rule)) => {
                let reason = "the service has one, and without it here secrets have other digests; give both the same";
                self.warning(report, path, reason.to_owned());
            }
            (Some(_), None) => {
                let reason = "the service has none, so secrets have other digests there; give both the same";
                self.warning(report, path, reason.to_owned());
            }
            _ => {}
        }
    }

    fn error(&self, report: &mut Report, path: &str, reason: String) {
        report.errors.push(self.at(path, reason));
    }

    fn warning(&self, report: &mut Report, path: &str, reason: String) {
        report.warnings.push(self.at(path, reason));
    }

    fn at(&self, path: &str, reason: String) -> ConfigError {
        let found = self.plugin.tree.find(path);
        let place = if reason.starts_with("unknown field") { found.name } else { found.tree.place };
        let reason = if path.is_empty() { reason } else { format!("{path}: {reason}") };
        fault(self.file, self.plugin.inside.unwrap_or(place), reason)
    }
}

/// The most that a limit holds.
const fn holds(bound: &Bound) -> u64 {
    match bound {
        Bound::Bucket(bucket) => bucket.capacity(),
        Bound::Quota(quota) => quota.quota(),
    }
}

/// Whether two peppers make the same digest of a secret.
fn same(one: &Pepper, other: &Pepper) -> bool {
    Part::secret(b"any", Some(one)) == Part::secret(b"any", Some(other))
}
