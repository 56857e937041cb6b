//! A `console` block: commands and what they show, compared with what they really do.

use std::sync::LazyLock;

use anyhow::{Result, ensure};
use regex_lite::Regex;

/// A command and the output that the page shows for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The command. It goes on in lines that begin with `> `, and after a `\` at its end.
    pub command: String,
    /// The output.
    pub output: String,
}

/// The commands of a block.
///
/// # Errors
/// When it doesn't begin with one.
pub(super) fn commands(block: &str) -> Result<Vec<Shown>> {
    let mut commands: Vec<Shown> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push(Shown { command: command.to_owned(), output: String::new() });
            continue;
        }
        let Some(last) = commands.last_mut() else { break };
        let more = if last.command.ends_with('\\') { Some(line) } else { line.strip_prefix("> ") };
        match more {
            Some(more) if last.output.is_empty() => last.command.extend(["\n", more]),
            _ => last.output.extend([line, "\n"]),
        }
    }
    ensure!(!commands.is_empty(), "a block of `console` begins with `$ ` and a command");
    Ok(commands)
}

/// Whether `real` is what a page shows as `shown`: line by line, where a line `...` stands for any number of lines and
/// `...` within one for any text, once what differs from run to run is made equal on both sides.
#[must_use]
pub fn same_output(shown: &str, real: &str) -> bool {
    let (shown, real) = (normal(shown), normal(real));
    lines_match(&lines(&shown), &lines(&real))
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty()).collect()
}

fn lines_match(shown: &[&str], real: &[&str]) -> bool {
    match (shown, real) {
        ([], []) => true,
        (["...", rest @ ..], _) => (0..=real.len()).any(|skipped| lines_match(rest, &real[skipped..])),
        ([first, rest @ ..], [line, others @ ..]) => line_matches(first, line) && lines_match(rest, others),
        _ => false,
    }
}

fn line_matches(shown: &str, real: &str) -> bool {
    let mut parts = shown.split("...");
    let Some(rest) = parts.next().and_then(|first| real.strip_prefix(first)) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    let after = middle.iter().try_fold(rest, |rest, part| Some(&rest[rest.find(part)? + part.len()..]));
    after.is_some_and(|rest| rest.ends_with(last))
}

/// Headers that HTTP or the proxy add and that no page is about. A page may leave them out.
const HEADERS: &str = r"(?i)^(connection|content-length|date|keep-alive|last-modified|server|transfer-encoding|vary|x-envoy-[a-z-]+): .*$";

/// What differs from run to run, and what stands for it.
const VOLATILE: [(&str, &str); 9] = [
    ("\r", ""),
    (HEADERS, ""),
    // Dates and times, first of all those with a unit of their own in them.
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "<time>"),
    // Times to wait in answers: `t=7` of RateLimit, Retry-After, and `next_ms` and so on in JSON.
    (r"\b(t=|retry-after: |(retry_after|next|full|deny_cache)_ms.?:\s*)\d+", "${1}<wait>"),
    // `20ms`, `1.5s`, `6m 12s`.
    (r"\b\d+(\.\d+)?(ms|s|m|h|d)( \d+(ms|s|m|h|d))*\b", "<span>"),
    // The version of a set of policies.
    (r"\b[0-9a-f]{12}\b", "<version>"),
    // A process.
    (r"\bpid[ =:]\s*\d+", "<pid>"),
    // Columns are as wide as what stands in them.
    (r"[ \t]+", " "),
    (r" $", ""),
];

static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rule = |(pattern, stand_in)| (Regex::new(&format!("(?m){pattern}")).expect("a regular expression"), stand_in);
    VOLATILE.map(rule).into()
});

fn normal(text: &str) -> String {
    RULES.iter().fold(text.to_owned(), |text, (pattern, stand_in)| pattern.replace_all(&text, *stand_in).into_owned())
}
