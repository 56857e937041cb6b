//! Each Rust file begins by saying what it is for; `tests.rs` says so by its name.

use super::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    tree.with_extension(&["rs"])
        .filter(|(path, text)| !path.ends_with("/tests.rs") && !has_docs(text))
        .map(|(path, _)| format!("{path}: begins without a `//!` line that says what it is for"))
        .collect()
}

/// Attributes and plain comments may come first.
fn has_docs(text: &str) -> bool {
    text.lines()
        .map(str::trim)
        .find(|line| !(line.is_empty() || line.starts_with("#!") || line.starts_with("//") && !line.starts_with("//!")))
        .is_some_and(|line| line.starts_with("//!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str, expected: bool) {
        assert_eq!(has_docs(text), expected, "{text}");
    }

    #[test]
    fn docs_come_before_code() {
        check_text("//! What it is.\n", true);
        check_text("#![forbid(unsafe_code)]\n\n// Why.\n//! What it is.\n", true);
        check_text("use std::fs;\n//! Too late.\n", false);
        check_text("/// Of an item.\nfn f() {}\n", false);
        check_text("", false);
    }
}
