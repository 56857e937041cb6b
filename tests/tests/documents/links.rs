//! Links of the pages lead to files that are there, and to headings that are in them.

use std::{collections::BTreeSet, fs, path::Path};

use libtest_mimic::{Failed, Trial};
use sluicegate_tests::{Page, repository};

const OTHERS: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

pub(crate) fn trial() -> Trial {
    Trial::test("links", || {
        let pages = Page::paths().map_err(|error| error.to_string())?;
        let faults: Vec<_> =
            pages.iter().map(|path| path.as_path()).chain(OTHERS.map(Path::new)).flat_map(broken).collect();
        if faults.is_empty() { Ok(()) } else { Err(Failed::from(faults.join("\n"))) }
    })
}

/// Each link of a page that leads nowhere.
fn broken(page: &Path) -> Vec<String> {
    let text = read(page);
    let folder = page.parent().unwrap_or(Path::new(""));
    let mut faults = Vec::new();
    for (index, line) in prose(&text) {
        for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") {
                continue;
            }
            let (path, heading) =
                target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
            let file = if path.is_empty() { page.to_owned() } else { folder.join(path) };
            let found = repository("").join(&file).exists()
                && heading.is_none_or(|heading| anchors(&read(&file)).contains(heading));
            if !found {
                faults.push(format!("{}:{}: {target} leads nowhere", page.display(), index + 1));
            }
        }
    }
    faults
}

fn read(path: &Path) -> String {
    fs::read_to_string(repository("").join(path)).unwrap_or_default()
}

/// The lines outside of fenced blocks, with their numbers from 0.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// What GitHub makes of the headings: the second of the same text ends in `-1`, and so on.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let Some(heading) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim()) else { continue };
        let letters = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        let anchor: String =
            letters.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect();
        let mut unique = anchor.clone();
        let mut count = 0;
        while !anchors.insert(unique) {
            count += 1;
            unique = format!("{anchor}-{count}");
        }
    }
    anchors
}
