//! The reference pages, made of the published schemas.

mod fields;
mod render;

use std::{env, fs};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use sluicegate_tests::repository;

/// A page, the schema that it is made of, and what it says before its tables.
struct Reference {
    page: &'static str,
    schema: &'static str,
    preface: &'static str,
}

const REFERENCES: [Reference; 2] = [
    Reference {
        page: "docs/reference-service.md",
        schema: "sluicegate.schema.json",
        preface: "# Reference: the service's file\n\n\
            Every field of the file that `sluicegate serve --config FILE` reads, made of\n\
            [`sluicegate.schema.json`](../sluicegate.schema.json). [`sluicegate.yaml`](../sluicegate.yaml) is an example with\n\
            comments. Unknown fields are errors, and `sluicegate check-config FILE` names the line of each fault. Outside of\n\
            `policies`, texts may name environment variables as `${NAME}`. `policies` and `rate_limit_service` are read anew\n\
            when the file changes, all else at the start.\n",
    },
    Reference {
        page: "docs/reference-filter.md",
        schema: "envoy/filter-config.schema.json",
        preface: "# Reference: the filter's configuration\n\n\
            Every field of the configuration that Envoy hands to the filter, made of\n\
            [`envoy/filter-config.schema.json`](../envoy/filter-config.schema.json).\n\
            [`envoy/envoy.yaml`](../envoy/envoy.yaml) shows where it stands. Unknown fields, fields that stand twice and `null`\n\
            are errors: Envoy refuses the configuration and keeps the one before. `sluicegate check-config SERVICE-FILE\n\
            --filter FILE` finds them first.\n",
    },
];

/// `SLUICEGATE_JOIN=1` writes the pages anew.
pub(crate) fn trials() -> Vec<Trial> {
    let trial = |reference: Reference| {
        Trial::test(format!("published::{}", reference.page), move || reference.check().map_err(Failed::from))
    };
    REFERENCES.into_iter().map(trial).collect()
}

impl Reference {
    fn check(&self) -> Result<(), String> {
        let schema = fs::read_to_string(repository(self.schema)).map_err(|error| error.to_string())?;
        let schema: Value = serde_json::from_str(&schema).map_err(|error| error.to_string())?;
        let sections = fields::sections(&schema).map_err(|fault| format!("{}: {fault}", self.schema))?;
        assert!(sections.iter().map(|section| section.fields.len()).sum::<usize>() > 40, "{sections:?}");
        let expected = format!("{}{}", self.preface, render::markdown(&sections));
        let page = repository(self.page);
        if env::var_os("SLUICEGATE_JOIN").is_some() {
            fs::write(&page, &expected).map_err(|error| error.to_string())?;
        }
        let published = fs::read_to_string(&page).unwrap_or_default();
        let fix = "out of step: SLUICEGATE_JOIN=1 cargo test -p sluicegate-tests --test documents published";
        if published == expected { Ok(()) } else { Err(format!("{}: {fix}", self.page)) }
    }
}
