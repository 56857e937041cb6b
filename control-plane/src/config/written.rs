//! What a file said, as digests: enough to see what changed, and nothing of the secrets in it.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The digest of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextDigest([u8; 32]);

impl TextDigest {
    /// The digest of this text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }
}

/// What a file said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    text: TextDigest,
    /// For each field outside of `policies` and `rate_limit_service` that has no fields of its own, the digest of its
    /// value.
    settings: BTreeMap<String, TextDigest>,
}

impl Written {
    /// A text that is a good configuration: one that isn't YAML would have no fields.
    pub(super) fn of(text: &str) -> Self {
        let mut settings = BTreeMap::new();
        if let Ok(Value::Object(mut fields)) = serde_saphyr::from_str(text) {
            // These are read anew without a restart.
            fields.remove("policies");
            fields.remove("rate_limit_service");
            collect(&Value::Object(fields), "", &mut settings);
        }
        Self { text: TextDigest::of(text), settings }
    }

    /// The whole text.
    #[must_use]
    pub const fn text(&self) -> TextDigest {
        self.text
    }

    /// The fields outside of `policies` and `rate_limit_service`, such as `store.url`, that say something else in
    /// `later`. A field that is there in one of them alone differs, also when it has its default value.
    #[must_use]
    pub fn settings_changed(&self, later: &Self) -> Vec<String> {
        let fields =
            self.settings.keys().chain(later.settings.keys().filter(|field| !self.settings.contains_key(*field)));
        let mut changed: Vec<String> =
            fields.filter(|field| self.settings.get(*field) != later.settings.get(*field)).cloned().collect();
        changed.sort_unstable();
        changed
    }
}

fn collect(value: &Value, path: &str, settings: &mut BTreeMap<String, TextDigest>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(value, &path, settings);
            }
        }
        other => {
            settings.insert(path.to_owned(), TextDigest::of(&other.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Written;

    fn check(before: &str, after: &str, changed: &[&str]) {
        assert_eq!(Written::of(before).settings_changed(&Written::of(after)), changed, "{before} -> {after}");
    }

    #[test]
    fn settings_that_changed_are_named_and_policies_are_none() {
        let before = "{ listen: a, store: { url: b, timeout: 1s }, policies: { p: { limits: [] } } }";
        check(before, before, &[]);
        check(before, "policies: {}\nstore: { timeout: 1s, url: b }\nlisten: a", &[]);
        check(before, "{ listen: a, store: { url: b, timeout: 1s }, rate_limit_service: { domains: {} } }", &[]);
        check(before, "{ listen: c, store: { url: b }, policies: {} }", &["listen", "store.timeout"]);
        check(before, "{ listen: a, store: { url: b, timeout: 1s }, admin: { token: x } }", &["admin.token"]);
    }

    #[test]
    fn nothing_of_a_secret_is_shown() {
        let written = Written::of("store: { password: hunter2 }");
        assert!(!format!("{written:?}").contains("hunter2"));
    }
}
