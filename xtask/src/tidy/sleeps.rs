//! Tests wait for conditions, never for a fixed time.

use super::tree::Tree;

const CALLS: [&str; 2] = ["sleep(", "setTimeout("];
/// Files that may sleep, each with its reason.
const ALLOWED: [(&str, &str); 2] = [
    ("tests/src/poll.rs", "the pause between two looks at a condition"),
    ("control-plane/tests/service/mod.rs", "the same, for a crate that the harness depends on"),
];
/// This folder names what it forbids.
const RULES: &str = "xtask/src/tidy/";

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension(&["rs", "py", "js", "mjs", "ts"]) {
        if ALLOWED.iter().any(|(allowed, _)| *allowed == path) || path.starts_with(RULES) {
            continue;
        }
        let mut is_test = path.split('/').any(|part| part == "tests" || part == "tests.rs");
        for (index, line) in text.lines().enumerate() {
            is_test |= line.trim() == "#[cfg(test)]";
            let code = line.split("//").next().unwrap_or_default();
            if is_test && CALLS.iter().any(|call| code.contains(call)) {
                findings.push(format!(
                    "{path}:{}: a test that sleeps: poll for the condition, or give the reason in xtask/src/tidy/sleeps.rs",
                    index + 1
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(path: &str, text: &str, expected: &[&str]) {
        let places: Vec<_> = check(&Tree::of(&[(path, text)]));
        let places: Vec<_> = places.iter().filter_map(|finding| finding.split(": ").next()).collect();
        assert_eq!(places, expected);
    }

    #[test]
    fn sleeping_tests_are_found() {
        check_one("tests/tests/suite/main.rs", "//! x\nsleep(SECOND).await;\n", &["tests/tests/suite/main.rs:2"]);
        check_one("wire/src/tests.rs", "thread::sleep(SECOND);\n", &["wire/src/tests.rs:1"]);
        check_one("wire/src/lib.rs", "sleep(A);\n#[cfg(test)]\nmod tests {\nsleep(B);\n}\n", &["wire/src/lib.rs:4"]);
        check_one("tests/contract.py", "time.sleep(1)\n", &["tests/contract.py:1"]);
    }

    #[test]
    fn other_code_may_sleep() {
        check_one("control-plane/src/drain.rs", "sleep(drain).await;\n", &[]);
        check_one("tests/src/poll.rs", "sleep(INTERVAL).await;\n", &[]);
        check_one("tests/src/lib.rs", "// never sleep(x)\n", &[]);
    }
}
