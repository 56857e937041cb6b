//! Documents name only paths that exist, from the root or, as in a map of one crate, from a folder further down.

use super::tree::Tree;

const DOCUMENTS: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
/// What a build or the set-up makes.
const MADE: [&str; 2] = ["target/", ".tools/"];
/// A word that ends so is a file of this repository; other files may be the reader's.
const OURS: [&str; 3] = [".rs", ".lua", ".md"];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    let pages = tree.with_extension(&["md"]).map(|(path, _)| path).filter(|path| path.starts_with("docs/"));
    for document in DOCUMENTS.into_iter().chain(pages) {
        let Some(text) = tree.get(document) else {
            findings.push(format!("{document}: does not exist"));
            continue;
        };
        let mut fenced = false;
        for (index, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if !fenced {
                let missing = code(line).chain(links(line)).filter(|word| is_missing(tree, word));
                findings.extend(missing.map(|word| format!("{document}:{}: {word} does not exist", index + 1)));
            }
        }
    }
    findings
}

/// What stands between backticks.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The targets of Markdown links into this repository.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()).filter(|target| !target.contains("://"))
}

fn is_missing(tree: &Tree, word: &str) -> bool {
    // From a folder of documents; that a link leads from there is for the tests of the pages to see.
    let word = word.trim_start_matches("../");
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    if !plain || word.starts_with('/') || MADE.iter().any(|made| word.starts_with(made)) {
        return false;
    }
    let ours = OURS.iter().any(|extension| word.len() > extension.len() && word.ends_with(extension));
    let begins_like_one = word.split_once('/').is_some_and(|(first, rest)| rest.is_empty() || tree.has(first));
    (ours || begins_like_one) && !tree.has(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_line(line: &str, expected: &[&str]) {
        let tree = Tree::of(&[
            ("README.md", line),
            ("ARCHITECTURE.md", ""),
            ("CONTRIBUTING.md", ""),
            ("filter/core/src/lib.rs", ""),
            ("envoy/envoy.yaml", ""),
        ]);
        assert_eq!(check(&tree), expected);
    }

    #[test]
    fn paths_that_exist_pass() {
        check_line("`filter/`, `filter/core`, `envoy/envoy.yaml` and [this](ARCHITECTURE.md#map)", &[]);
        check_line("seen from their crate: `lib.rs`, `src/lib.rs`, `core/`", &[]);
    }

    #[test]
    fn paths_that_do_not_exist_are_found() {
        check_line("see `rc/lib.rs`", &["README.md:1: rc/lib.rs does not exist"]);
        check_line("see `filter/gone.rs`", &["README.md:1: filter/gone.rs does not exist"]);
        check_line("x\nsee `bench/`", &["README.md:2: bench/ does not exist"]);
        check_line(
            "`envoy/istio` and `other.lua`",
            &["README.md:1: envoy/istio does not exist", "README.md:1: other.lua does not exist"],
        );
        check_line("[map](docs/map.md)", &["README.md:1: docs/map.md does not exist"]);
    }

    #[test]
    fn other_words_with_slashes_are_no_paths() {
        check_line("`/v1/check` answers `application/problem+json`, `text/plain`, from `target/x.wasm`", &[]);
        check_line(
            "`my-limits.yaml`, `cargo xtask demo`, <https://example.com/x.md>, [x](https://example.com/y.md)",
            &[],
        );
        check_line("```\n`filter/gone.rs`\n```", &[]);
    }

    #[test]
    fn pages_of_the_documentation_are_documents() {
        let line = "`envoy/gone.yaml`, [other](page.md), [up](../README.md)";
        let tree = Tree::of(&[
            ("README.md", ""),
            ("ARCHITECTURE.md", ""),
            ("CONTRIBUTING.md", ""),
            ("docs/page.md", line),
            ("envoy/envoy.yaml", ""),
        ]);
        assert_eq!(check(&tree), ["docs/page.md:1: envoy/gone.yaml does not exist"]);
    }

    #[test]
    fn a_missing_document_is_found() {
        assert_eq!(
            check(&Tree::of(&[("README.md", ""), ("CONTRIBUTING.md", "")])),
            ["ARCHITECTURE.md: does not exist"]
        );
    }
}
