//! From the file as written to a configuration: every value is looked at, and all that are wrong are told at once.

use std::{fmt, time::Duration};

use crate::config::spanned::Spanned;
use sluicegate_wire::Pepper;

use super::{Address, Config, Written, duration, error::Fault, raw::RawConfig, substitute::substitute};

/// The configuration, or all of its faults.
pub(super) fn check(
    raw: &RawConfig,
    written: Written,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Vec<Fault>> {
    let mut checker = Checker { environment, faults: Vec::new() };
    let listen = checker.address("listen", raw.listen.as_ref(), "127.0.0.1:8080");
    let token = checker.tokens("", raw.token.as_ref(), raw.token_file.as_ref());
    let tls = checker.server_tls("tls", raw.tls.as_ref());
    let max_connections = checker.max_connections(raw.max_connections.as_ref());
    let admin = checker.admin(raw, listen.as_ref());
    let reuse_port =
        checker.reuse_port(raw.reuse_port.as_ref(), [listen.as_ref(), admin.as_ref().map(|admin| &admin.listen)]);
    let store = checker.store(&raw.store);
    let drain = checker.duration("drain", raw.drain.as_ref(), Duration::from_secs(5));
    let key_pepper = checker.key_pepper(raw.key_pepper.as_ref());
    let policies = checker.policies(&raw.policies);
    let rate_limit_service = checker.rate_limit_service(raw, policies.as_ref());
    let checked = || {
        Some(Config {
            listen: listen?,
            token: token?,
            tls: tls?,
            max_connections: max_connections?,
            reuse_port: reuse_port?,
            admin: admin?,
            store: store?,
            drain: drain?,
            key_pepper: key_pepper?,
            refunds: raw.refunds,
            policies: policies?.with_rate_limit_service(rate_limit_service),
            written,
        })
    };
    match checked() {
        Some(config) if checker.faults.is_empty() => Ok(config),
        _ => Err(checker.faults),
    }
}

/// Collects faults. Each check is none when it found one.
pub(super) struct Checker<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    faults: Vec<Fault>,
}

impl Checker<'_> {
    /// The inner option is the setting, the outer one whether it is good.
    fn key_pepper(&mut self, field: Option<&Spanned<String>>) -> Option<Option<Pepper>> {
        let Some(field) = field else { return Some(None) };
        let text = self.not_empty("key_pepper", field)?;
        self.good("key_pepper", field, Pepper::new(text.as_bytes())).map(Some)
    }

    pub(super) fn address(&mut self, path: &str, field: Option<&Spanned<String>>, default: &str) -> Option<Address> {
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
