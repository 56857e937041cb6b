//! `${NAME}` in the file's texts: values from the environment.

/// Why a text can't be completed. No variant carries a value, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SubstituteError {
    #[error("the environment variable {0} is not set (or is not Unicode); set it")]
    Unset(String),
    #[error("${{ without a variable's name and }}; write ${{NAME}}, or $${{ for a literal ${{")]
    Malformed,
}

/// Replaces each `${NAME}` by the variable's value, once: a value is never looked into. A literal `${` is written
/// `$${`; any other `$` stands for itself.
pub(super) fn substitute(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, SubstituteError> {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            done.push_str(before);
            done.push_str("${");
            rest = after;
            continue;
        }
        let (name, after) = after.split_once('}').ok_or(SubstituteError::Malformed)?;
        if !is_variable(name) {
            return Err(SubstituteError::Malformed);
        }
        done.push_str(before);
        done.push_str(&environment(name).ok_or_else(|| SubstituteError::Unset(name.to_owned()))?);
        rest = after;
    }
    done.push_str(rest);
    Ok(done)
}

/// A name as POSIX defines it: letters, digits and underscores, no digit first (XBD section 3.216).
fn is_variable(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, SubstituteError>) {
        let environment = |name: &str| match name {
            "A" => Some("one".to_owned()),
            "NESTED" => Some("${A}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        assert_eq!(substitute(text, &environment), expected.map(str::to_owned), "{text}");
    }

    #[test]
    fn variables_are_replaced_once() {
        check("", Ok(""));
        check("plain", Ok("plain"));
        check("${A}", Ok("one"));
        check("redis://:${A}@host/${A}", Ok("redis://:one@host/one"));
        check("[${EMPTY}]", Ok("[]"));
        check("${NESTED}", Ok("${A}"));
        check("cost $5, $A, }", Ok("cost $5, $A, }"));
        check("$${A} ${A}", Ok("${A} one"));
    }

    #[test]
    fn what_can_not_be_replaced_is_refused() {
        check("${B}", Err(SubstituteError::Unset("B".to_owned())));
        for text in ["${", "${A", "${}", "${ A }", "${A:-x}", "${1A}"] {
            check(text, Err(SubstituteError::Malformed));
        }
    }
}
