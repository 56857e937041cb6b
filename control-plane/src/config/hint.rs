//! What somebody may have meant.

use strsim::damerau_levenshtein;

/// ` (did you mean NAME?)` for the one of `known` that is but a slip away from `written`; empty when none is.
pub(crate) fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    // One slip in a short word, one in three letters of longer ones: `cap` is no slip of `per`.
    let most = (written.chars().count() / 3).max(1);
    // Comparing costs the product of the lengths, and names have 64 characters at most.
    let near = known.into_iter().filter(|_| written.len() <= 64).map(|name| (distance(written, name), name));
    match near.filter(|(slips, _)| *slips <= most).min() {
        Some((_, name)) => format!(" (did you mean {name}?)"),
        None => String::new(),
    }
}

/// A name in another style is no further away than a slip.
fn distance(written: &str, name: &str) -> usize {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '.'], "_");
    damerau_levenshtein(&plain(written), &plain(name))
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    fn check(written: &str, expected: &str) {
        let known = ["capacity", "refill", "per", "time_zone"];
        let expected = if expected.is_empty() { String::new() } else { format!(" (did you mean {expected}?)") };
        assert_eq!(did_you_mean(written, known), expected, "{written}");
    }

    #[test]
    fn the_nearest_name_is_meant() {
        check("capacty", "capacity");
        check("Capacity", "capacity");
        check("capicaty", "capacity");
        check("refil", "refill");
        check("pre", "per");
        check("time-zone", "time_zone");
        check("timezone", "time_zone");
    }

    #[test]
    fn what_is_near_to_none_gets_no_hint() {
        for written in ["", "cap", "burst", "quota", "x", &"capacity".repeat(20)] {
            check(written, "");
        }
    }
}
