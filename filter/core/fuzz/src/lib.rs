//! What the fuzz targets share: a request made of text, and a proxy that remembers nothing.

pub mod struct_form;

use std::{cell::RefCell, collections::BTreeMap};

use sluicegate_filter_core::{
    Headers, Request, SharedData,
    local::{Cas, SetError, Stored, Unreadable},
};

/// A request from lines of `name:value`; a name that begins with `@` is a property's, with dots.
pub struct TextRequest {
    headers: Headers,
    properties: Vec<(Vec<u8>, Vec<u8>)>,
}

impl TextRequest {
    /// The request that these lines say.
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        let (mut lines, mut properties) = (Vec::new(), Vec::new());
        for line in text.split(|byte| *byte == b'\n') {
            // Pseudo-headers begin with a colon.
            let Some(at) = line.iter().skip(1).position(|byte| *byte == b':') else { continue };
            let (name, value) = line.split_at(at + 1);
            let value = value[1..].to_vec();
            match name.strip_prefix(b"@") {
                Some(path) => properties.push((path.to_vec(), value)),
                None => lines.push((name.to_vec(), value)),
            }
        }
        Self { headers: Headers::new(lines), properties }
    }
}

impl Request for TextRequest {
    fn headers(&self) -> &Headers {
        &self.headers
    }

    fn property(&self, path: &[&str]) -> Option<Vec<u8>> {
        let path = path.join(".");
        self.properties.iter().find(|(name, _)| name == path.as_bytes()).map(|(_, value)| value.clone())
    }
}

/// The shared data of a proxy with one worker.
#[derive(Default)]
pub struct Shared(RefCell<BTreeMap<String, Stored>>);

impl SharedData for Shared {
    fn get(&self, key: &str) -> Result<Option<Stored>, Unreadable> {
        Ok(self.0.borrow().get(key).cloned())
    }

    fn set(&self, key: &str, value: &[u8], seen: Option<Cas>) -> Result<(), SetError> {
        let cas = Cas(seen.map_or(1, |Cas(number)| number + 1));
        self.0.borrow_mut().insert(key.to_owned(), Stored { value: value.to_vec(), cas });
        Ok(())
    }
}
