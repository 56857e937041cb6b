//! Versions from `Cargo.lock`.

/// The version of the only package called `name`, or nothing when there is none or more than one.
pub(crate) fn version<'a>(lock_file: &'a str, name: &str) -> Option<&'a str> {
    let mut versions = lock_file.split("[[package]]").filter_map(|package| {
        let field = |key: &str| {
            package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
        };
        (field("name") == Some(name)).then(|| field("version")).flatten()
    });
    let only = versions.next()?;
    versions.next().is_none().then_some(only)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK_FILE: &str = r#"
version = 4

[[package]]
name = "wasm-bindgen"
version = "0.2.130"
dependencies = [
 "wasm-bindgen-macro",
]

[[package]]
name = "wasm-bindgen-macro"
version = "0.2.131"

[[package]]
name = "syn"
version = "1.0.0"

[[package]]
name = "syn"
version = "2.0.0"
"#;

    fn check(name: &str, expected: Option<&str>) {
        assert_eq!(version(LOCK_FILE, name), expected);
    }

    #[test]
    fn versions_are_found_by_the_whole_name() {
        check("wasm-bindgen", Some("0.2.130"));
        check("wasm-bindgen-macro", Some("0.2.131"));
        check("wasm", None);
        check("4", None);
    }

    #[test]
    fn an_ambiguous_name_has_no_version() {
        check("syn", None);
    }
}
