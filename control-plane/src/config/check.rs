//! From the file as written to a configuration: every value is looked at, and all that are wrong are told at once.

use std::{fmt, time::Duration};

use serde_saphyr::Spanned;
use sluicegate_wire::Pepper;

use super::{Address, Admin, Config, Secret, Written, duration, error::Fault, raw::RawConfig, substitute::substitute};

/// The configuration, or all of its faults.
pub(super) fn check(
    raw: &RawConfig,
    written: Written,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Vec<Fault>> {
    let mut checker = Checker { environment, faults: Vec::new() };
    let listen = checker.address("listen", raw.listen.as_ref(), "127.0.0.1:8080");
    let admin = checker.admin(raw, listen.as_ref());
    let store = checker.store(&raw.store);
    let drain = checker.duration("drain", raw.drain.as_ref(), Duration::from_secs(5));
    let key_pepper = checker.key_pepper(raw.key_pepper.as_ref());
    let policies = checker.policies(&raw.policies);
    match (listen, admin, store, drain, key_pepper, policies) {
        (Some(listen), Some(admin), Some(store), Some(drain), Some(key_pepper), Some(policies))
            if checker.faults.is_empty() =>
        {
            // Who can reach the data plane can refund, so that stays on this machine unless said otherwise.
            let refunds = raw.refunds.unwrap_or(listen.is_local());
            Ok(Config { listen, admin, store, drain, key_pepper, refunds, policies, written })
        }
        _ => Err(checker.faults),
    }
}

/// Collects faults. Each check is none when it found one.
pub(super) struct Checker<'a> {
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

    /// The inner option is the setting, the outer one whether it is good.
    fn key_pepper(&mut self, field: Option<&Spanned<String>>) -> Option<Option<Pepper>> {
        let Some(field) = field else { return Some(None) };
        let text = self.not_empty("key_pepper", field)?;
        self.good("key_pepper", field, Pepper::new(text.as_bytes())).map(Some)
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

    pub(super) fn duration(
        &mut self,
        path: &str,
        field: Option<&Spanned<String>>,
        default: Duration,
    ) -> Option<Duration> {
        let Some(field) = field else { return Some(default) };
        let text = self.text(path, field)?;
        self.good(path, field, duration::parse(&text))
    }

    pub(super) fn not_empty(&mut self, path: &str, field: &Spanned<String>) -> Option<String> {
        let text = self.text(path, field)?;
        if text.trim().is_empty() {
            return self.fault(path, field, "is empty; give it a value or leave it out");
        }
        Some(text)
    }

    pub(super) fn text(&mut self, path: &str, field: &Spanned<String>) -> Option<String> {
        self.good(path, field, substitute(&field.value, self.environment))
    }

    pub(super) fn good<T, F, E: fmt::Display>(
        &mut self,
        path: &str,
        field: &Spanned<F>,
        value: Result<T, E>,
    ) -> Option<T> {
        value.map_or_else(|error| self.fault(path, field, error), Some)
    }

    pub(super) fn fault<T, F>(&mut self, path: &str, field: &Spanned<F>, reason: impl fmt::Display) -> Option<T> {
        self.faults.push(Fault::new(field.referenced, path, reason));
        None
    }
}
