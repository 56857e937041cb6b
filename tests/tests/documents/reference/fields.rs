//! The objects of a JSON Schema and their fields, in words.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// An object and its fields.
#[derive(Debug)]
pub(super) struct Section {
    /// Where it stands first, such as `rules[].limits[]`; empty for the whole.
    pub(super) path: String,
    pub(super) meaning: String,
    /// What must be together, where not every combination of fields is right.
    pub(super) forms: Option<String>,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) path: String,
    /// Markdown, with its bounds.
    pub(super) kind: String,
    /// Markdown; none where there is neither a default nor a need.
    pub(super) default: Option<String>,
    pub(super) meaning: String,
}

/// All objects, each once, those of the outer fields first.
///
/// # Errors
/// Names the field that has no description, or whose form has no words.
pub(super) fn sections(schema: &Value) -> Result<Vec<Section>, String> {
    let mut reader = Reader { root: schema, places: BTreeMap::new(), waiting: vec![(String::new(), schema)] };
    let mut sections = Vec::new();
    while let Some((path, object)) = reader.waiting.pop() {
        let mut found = Vec::new();
        std::mem::swap(&mut found, &mut reader.waiting);
        let section = reader.section(&path, object)?;
        if !section.fields.is_empty() {
            sections.push(section);
        }
        // Those found in this object come next, in the order of its fields.
        reader.waiting.reverse();
        found.append(&mut reader.waiting);
        reader.waiting = found;
    }
    Ok(sections)
}

struct Reader<'a> {
    root: &'a Value,
    /// Where each definition stands first.
    places: BTreeMap<&'a str, String>,
    waiting: Vec<(String, &'a Value)>,
}

impl<'a> Reader<'a> {
    /// The two drafts of JSON Schema have a word each for it.
    fn definition(&self, name: &str) -> &'a Value {
        self.root.get("$defs").or_else(|| self.root.get("definitions")).map_or(&Value::Null, |all| &all[name])
    }

    fn section(&mut self, path: &str, object: &'a Value) -> Result<Section, String> {
        let required: Vec<_> = object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let fields = properties(object).map(|(name, schema)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.field(path, schema, required.contains(&name.as_str()))
        });
        Ok(Section {
            fields: fields.collect::<Result<_, _>>()?,
            path: path.to_owned(),
            meaning: text(object, "description").to_owned(),
            forms: forms(object),
        })
    }

    fn field(&mut self, path: String, schema: &'a Value, required: bool) -> Result<Field, String> {
        // What a definition says of itself goes for a field that says nothing.
        let target = reference(schema).map(|name| self.definition(name));
        let own = text(schema, "description");
        let description = if own.is_empty() { target.map_or("", |target| text(target, "description")) } else { own };
        if description.is_empty() {
            return Err(format!("{path} has no description"));
        }
        let (meaning, default) = split(description);
        let default = if required { Some("required".to_owned()) } else { default };
        let kind = match target {
            // Its description is the field's already.
            Some(target) if own.is_empty() && !holds_fields(target) => self.kind(&path, target, true)?,
            _ => self.kind(&path, schema, true)?,
        };
        Ok(Field { kind, default, meaning, path })
    }

    /// The kind of value. `told` says that the schema's description is told elsewhere.
    fn kind(&mut self, path: &str, schema: &'a Value, told: bool) -> Result<String, String> {
        if let Some(name) = reference(schema) {
            let target = self.definition(name);
            return match self.places.get(name) {
                Some(place) => Ok(link("as", place)),
                None if holds_fields(target) => {
                    self.places.insert(name, path.to_owned());
                    self.kind(path, target, true)
                }
                None => self.kind(path, target, false),
            };
        }
        let mut kind = self.bare_kind(path, schema)?;
        if let Some(words) = bounds(schema) {
            kind.extend([", ", &words]);
        }
        let description = text(schema, "description").trim_end_matches('.');
        if !told && !description.is_empty() && schema.get("enum").is_none() {
            kind.extend([": ", &lower(description)]);
        } else if schema.get("pattern").is_some() && schema.get("title").is_none() {
            return Err(format!("{path} has a pattern and no words for it"));
        }
        Ok(kind)
    }

    fn bare_kind(&mut self, path: &str, schema: &'a Value) -> Result<String, String> {
        if let Some(title) = schema.get("title").and_then(Value::as_str) {
            return Ok(title.to_owned());
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            let words = words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`"));
            return Ok(words.collect::<Vec<_>>().join(", "));
        }
        if let Some(only) = schema.get("const") {
            return Ok(format!("`{only}`"));
        }
        let forms = schema.get("anyOf").or_else(|| schema.get("allOf")).and_then(Value::as_array);
        if let Some(forms) = forms {
            let kinds = forms.iter().map(|form| self.kind(path, form, true)).collect::<Result<Vec<_>, _>>()?;
            return Ok(kinds.join(" or "));
        }
        match schema["type"].as_str() {
            Some("string") => Ok("text".to_owned()),
            Some("boolean") => Ok("`true` or `false`".to_owned()),
            Some("array") => Ok(format!("list of {}", self.kind(&format!("{path}[]"), &schema["items"], true)?)),
            Some("object") => self.object_kind(path, schema),
            Some(kind) => Ok(kind.to_owned()),
            None if schema["type"].is_array() => Ok("text, number, `true` or `false`".to_owned()),
            None => Err(format!("{path} is of no kind: {schema}")),
        }
    }

    fn object_kind(&mut self, path: &str, schema: &'a Value) -> Result<String, String> {
        let named = schema["patternProperties"].as_object().and_then(|patterns| patterns.values().next());
        let any = schema.get("additionalProperties").filter(|value| value.is_object());
        if let Some(values) = named.or(any) {
            return Ok(format!("names, each with {}", self.kind(&format!("{path}.NAME"), values, true)?));
        }
        self.waiting.push((path.to_owned(), schema));
        Ok(link("object", path))
    }
}

fn properties(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object["properties"].as_object().into_iter().flat_map(Map::iter)
}

/// Whether fields are in it, which are listed once.
fn holds_fields(schema: &Value) -> bool {
    let forms = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    properties(schema).next().is_some() || forms.into_iter().any(|form| reference(form).is_some() || holds_fields(form))
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

fn text<'a>(schema: &'a Value, member: &str) -> &'a str {
    schema[member].as_str().unwrap_or_default()
}

/// To the table of an object: `as …` where that is another field's.
fn link(word: &str, path: &str) -> String {
    match word {
        "as" => format!("as [`{path}`](#{})", anchor(path)),
        _ => format!("[{word}](#{})", anchor(path)),
    }
}

/// What GitHub makes of a heading.
fn anchor(path: &str) -> String {
    path.chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
        .flat_map(char::to_lowercase)
        .collect()
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

/// Descriptions end with what holds where the field isn't there: "`1s` without." or "Without, as the top level says."
fn split(description: &str) -> (String, Option<String>) {
    let (rest, last) = description.rsplit_once(". ").map_or(("", description), |(rest, last)| (rest, last));
    let default = last.strip_suffix(" without.").or_else(|| last.strip_prefix("Without, ")?.strip_suffix('.'));
    match default {
        Some(default) if !rest.is_empty() => (format!("{rest}."), Some(lower_word(default))),
        _ => (description.to_owned(), None),
    }
}

/// Words such as `Nothing` begin a sentence; other defaults are as they stand.
fn lower_word(default: &str) -> String {
    let word = default.chars().all(|letter| letter.is_ascii_alphabetic() || " '".contains(letter))
        && default.chars().skip(1).any(|letter| letter.is_ascii_lowercase());
    if word { lower(default) } else { default.to_owned() }
}

fn bounds(schema: &Value) -> Option<String> {
    let range = |least: &str, most: &str, unit: &str| {
        let (least, most) = (schema[least].as_u64(), schema[most].as_u64());
        match (least, most) {
            (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
            (Some(least), None) => Some(format!("at least {least}{unit}")),
            (None, Some(most)) => Some(format!("at most {most}{unit}")),
            (None, None) => None,
        }
    };
    range("minimum", "maximum", "")
        .or_else(|| range("minItems", "maxItems", " of them"))
        .or_else(|| Some("not empty".to_owned()).filter(|_| schema["minLength"] == 1))
        .or_else(|| range("minLength", "maxLength", " characters"))
}

/// The combinations of fields that `oneOf` allows.
fn forms(object: &Value) -> Option<String> {
    let alternatives = object.get("oneOf")?.as_array()?.iter().map(|form| {
        let names = form["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.map(|name| format!("`{name}`")).collect::<Vec<_>>()
    });
    let alternatives: Vec<_> = alternatives.collect();
    if alternatives.iter().all(|names| names.len() == 1) {
        return Some(format!("Exactly one of {}.", alternatives.concat().join(", ")));
    }
    let alternatives: Vec<_> = alternatives.iter().map(|names| names.join(", ")).collect();
    Some(format!("Either {}.", alternatives.join("; or ")))
}
