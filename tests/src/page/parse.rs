//! Finds the fenced blocks of a Markdown text, and what the comments above them say.

use std::path::{Component, Path};

use anyhow::{Context as _, Result, bail, ensure};

use super::{Block, Place, Role, shown};

/// Languages of fences that hold commands, though none of the two that say what becomes of them.
const OTHER_SHELLS: [&str; 6] = ["bash", "fish", "shell", "shell-session", "terminal", "zsh"];

/// Begins a comment of commands that readers don't see: they make the state that a section is about.
const HIDDEN: &str = "<!-- run";

/// The blocks of a page.
///
/// # Errors
/// When one is covered by no rule; the message names its line.
pub(super) fn blocks(text: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut tags = Tags::default();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let at_line = || format!("line {}", index + 1);
        let trimmed = line.trim_start();
        if trimmed == HIDDEN {
            let body = body(&mut lines, 0, "-->").with_context(at_line)?;
            blocks.push(Block { line: index + 1, place: Place::Here, role: Role::Commands(body) });
        } else if let Some(comment) = comment(trimmed) {
            tags.comments.push(comment);
        } else if let Some(info) = trimmed.strip_prefix("```") {
            // What follows the language tells blocks of a page apart, for tests of its own.
            let language = info.split_whitespace().next().unwrap_or_default();
            let indent = line.len() - trimmed.len();
            let body = body(&mut lines, indent, "```").with_context(at_line)?;
            let (place, role) = std::mem::take(&mut tags).apply(language, body).with_context(at_line)?;
            blocks.push(Block { line: index + 1, place, role });
        } else {
            tags = Tags::default();
        }
    }
    Ok(blocks)
}

/// The text of a line that is one HTML comment.
fn comment(line: &str) -> Option<&str> {
    Some(line.trim_end().strip_prefix("<!--")?.strip_suffix("-->")?.trim())
}

/// The lines up to the one that is `end`, without what the first one is indented by.
fn body<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>, indent: usize, end: &str) -> Result<String> {
    let mut body = String::new();
    for (_, line) in lines {
        if line.trim() == end {
            return Ok(body);
        }
        let spaces = line.len() - line.trim_start_matches(' ').len();
        body.push_str(&line[spaces.min(indent)..]);
        body.push('\n');
    }
    bail!("the block has no end")
}

/// The comments right above a fence.
#[derive(Default)]
struct Tags<'a> {
    comments: Vec<&'a str>,
}

impl Tags<'_> {
    fn apply(self, language: &str, body: String) -> Result<(Place, Role)> {
        let (mut place, mut file) = (Place::Here, None);
        for comment in self.comments {
            match comment.split_once(": ").unwrap_or((comment, "")) {
                ("docker", "") => place = Place::Docker,
                ("cluster", kind) if !kind.is_empty() => place = Place::Cluster(kind.to_owned()),
                ("file", name) if !name.is_empty() => file = Some(name),
                _ => bail!("`{comment}` above a block is none of `file: NAME`, `docker` and `cluster: KIND`"),
            }
        }
        Ok((place, role(language, file, body)?))
    }
}

fn role(language: &str, file: Option<&str>, body: String) -> Result<Role> {
    if let Some(name) = file {
        let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(inside, "file: {name} is not below the folder of the page's commands");
        return Ok(Role::File { name: name.to_owned(), text: body });
    }
    match language {
        "sh" => Ok(Role::Commands(body)),
        "console" => Ok(Role::Console(shown::commands(&body)?)),
        "" => bail!("a block without a language: `text` where it is nothing to run"),
        shell if OTHER_SHELLS.contains(&shell) => bail!("{shell}: commands are in blocks of `sh` or `console`"),
        other => Ok(Role::Text { language: other.to_owned(), text: body }),
    }
}
