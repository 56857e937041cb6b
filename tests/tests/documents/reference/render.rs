//! Sections as Markdown.

use std::fmt::Write as _;

use super::fields::{Field, Section};

pub(super) fn markdown(sections: &[Section]) -> String {
    sections.iter().map(section).collect()
}

fn section(section: &Section) -> String {
    let mut text = String::new();
    if !section.path.is_empty() {
        let _ = write!(text, "\n## `{}`\n", section.path);
    }
    if !section.path.is_empty() && !section.meaning.is_empty() {
        let _ = write!(text, "\n{}\n", section.meaning);
    }
    if let Some(forms) = &section.forms {
        let _ = write!(text, "\n{forms}\n");
    }
    text.push_str("\n| field | type | default | meaning |\n|---|---|---|---|\n");
    text.extend(section.fields.iter().map(row));
    text
}

fn row(field: &Field) -> String {
    let default = field.default.as_deref().unwrap_or_default();
    format!("| `{}` | {} | {} | {} |\n", field.path, cell(&field.kind), cell(default), cell(&field.meaning))
}

fn cell(text: &str) -> String {
    text.replace('|', r"\|").replace('<', r"\<")
}
