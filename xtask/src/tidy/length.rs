//! Files stay small.

use super::tree::Tree;

const MAX_LINES: usize = 400;
/// Longer files, each with its reason.
const LONGER: [(&str, &str); 1] = [("lua/take.lua", "published: joined from lua/parts/, each of which is short")];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    tree.with_extension(&["rs", "lua", "py", "js", "mjs", "ts", "sh"])
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(path, lines)| *lines > MAX_LINES && !LONGER.iter().any(|(longer, _)| longer == path))
        .map(|(path, lines)| {
            format!("{path}: {lines} lines, over {MAX_LINES}: split it by role, or give the reason in xtask/src/tidy/length.rs")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_lines(path: &str, lines: usize, findings: usize) {
        assert_eq!(check(&Tree::of(&[(path, &"x\n".repeat(lines))])).len(), findings);
    }

    #[test]
    fn only_code_over_the_bound_is_found() {
        check_lines("wire/src/lib.rs", MAX_LINES, 0);
        check_lines("wire/src/lib.rs", MAX_LINES + 1, 1);
        check_lines("lua/parts/take.lua", MAX_LINES + 1, 1);
        check_lines("lua/take.lua", MAX_LINES + 1, 0);
        check_lines("Cargo.lock", MAX_LINES + 1, 0);
    }
}
