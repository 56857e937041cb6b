//! Who may name what: the proxy's SDK, the Redis client, the clock.

use super::tree::Tree;

/// A path that Rust code may name only in some places.
struct Boundary {
    /// What is named, `krate::` or a whole path.
    name: &'static str,
    /// The key in a `Cargo.toml` that would allow it; empty for the standard library.
    dependency: &'static str,
    /// Where it may be named: beginnings of paths.
    allowed: &'static [&'static str],
    /// Manifests that may depend on it.
    manifests: &'static [&'static str],
    /// Where the rule holds; everywhere when empty.
    within: &'static [&'static str],
    why: &'static str,
}

const BOUNDARIES: [Boundary; 4] = [
    Boundary {
        name: "proxy_wasm::",
        dependency: "proxy-wasm",
        allowed: &["filter/src/"],
        manifests: &["filter/Cargo.toml"],
        within: &[],
        why: "only the filter's shell talks to the proxy",
    },
    Boundary {
        name: "redis::",
        dependency: "redis",
        allowed: &["lua/", "control-plane/src/store/", "tests/", "bench/"],
        manifests: &["lua/Cargo.toml", "control-plane/Cargo.toml", "tests/Cargo.toml", "bench/Cargo.toml"],
        within: &[],
        why: "only the scripts' crate and the store module talk to Redis",
    },
    Boundary {
        name: "Instant::now",
        dependency: "",
        allowed: &[],
        manifests: &[],
        within: READ_NO_CLOCK,
        why: "time is an argument here",
    },
    Boundary {
        name: "SystemTime::now",
        dependency: "",
        allowed: &[],
        manifests: &[],
        within: READ_NO_CLOCK,
        why: "time is an argument here",
    },
];

const READ_NO_CLOCK: &[&str] = &["filter/core/", "lua/", "wire/"];
/// This folder names everything that it forbids.
const RULES: &str = "xtask/src/tidy/";

pub(super) fn check(tree: &Tree) -> Vec<String> {
    BOUNDARIES.iter().flat_map(|boundary| boundary.check(tree)).collect()
}

impl Boundary {
    fn check(&self, tree: &Tree) -> Vec<String> {
        let mut findings = Vec::new();
        for (path, text) in tree.with_extension(&["rs"]) {
            let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| path.starts_with(prefix));
            if starts(self.allowed) || path.starts_with(RULES) || !(self.within.is_empty() || starts(self.within)) {
                continue;
            }
            for (index, line) in text.lines().enumerate() {
                if names(line, self.name) {
                    findings.push(format!("{path}:{}: names {}: {}", index + 1, self.name, self.why));
                }
            }
        }
        for (path, text) in tree.with_extension(&["toml"]) {
            let is_member = path.ends_with("/Cargo.toml");
            if is_member && !self.manifests.contains(&path) {
                let depends = |line: &str| line.split([' ', '=', '.']).next() == Some(self.dependency);
                if let Some(index) = text.lines().position(|line| !line.is_empty() && depends(line)) {
                    findings.push(format!("{path}:{}: depends on {}: {}", index + 1, self.dependency, self.why));
                }
            }
        }
        findings
    }
}

/// Whether code on `line` begins a path with `name`. A module of the same name, behind `::`, is another thing.
fn names(line: &str, name: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices(name).any(|(at, _)| {
        let before = code.get(..at).and_then(|before| before.chars().next_back());
        let is_path = name.ends_with("::") && before == Some(':');
        !is_path && !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(check(&Tree::of(&[(path, text)])), expected);
    }

    #[test]
    fn the_sdk_stays_in_the_filter() {
        check_one("filter/src/lib.rs", "use proxy_wasm::hostcalls;\n", &[]);
        check_one(
            "filter/core/src/lib.rs",
            "//! proxy_wasm::\nuse proxy_wasm::hostcalls;\n",
            &["filter/core/src/lib.rs:2: names proxy_wasm::: only the filter's shell talks to the proxy"],
        );
        check_one(
            "wire/Cargo.toml",
            "[dependencies]\nproxy-wasm = { workspace = true }\n",
            &["wire/Cargo.toml:2: depends on proxy-wasm: only the filter's shell talks to the proxy"],
        );
        check_one("Cargo.toml", "[workspace.dependencies]\nproxy-wasm = \"0.2.5\"\n", &[]);
        check_one("wire/Cargo.toml", "[dependencies]\nproxy-wasm-core = \"1\"\n", &[]);
    }

    #[test]
    fn redis_stays_in_the_store() {
        check_one("control-plane/src/store/mod.rs", "use redis::Client;\n", &[]);
        check_one("control-plane/src/api.rs", "use crate::store::redis::Store;\nlet url = \"redis://host\";\n", &[]);
        check_one(
            "control-plane/src/api.rs",
            "fn f(e: redis::RedisError) {}\n",
            &["control-plane/src/api.rs:1: names redis::: only the scripts' crate and the store module talk to Redis"],
        );
        check_one(
            "filter/core/Cargo.toml",
            "redis.workspace = true\n",
            &["filter/core/Cargo.toml:1: depends on redis: only the scripts' crate and the store module talk to Redis"],
        );
    }

    #[test]
    fn decisions_read_no_clock() {
        check_one("control-plane/src/serve.rs", "let start = Instant::now();\n", &[]);
        check_one(
            "filter/core/src/lib.rs",
            "let now = std::time::Instant::now();\n",
            &["filter/core/src/lib.rs:1: names Instant::now: time is an argument here"],
        );
    }
}
