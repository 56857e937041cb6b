//! Subjects as a schema.

use std::borrow::Cow;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ArrayBuilder, ObjectBuilder, RefOr, Schema, Type, schema::AnyOfBuilder},
};

use super::{Part, Subject};

impl PartialSchema for Subject {
    fn schema() -> RefOr<Schema> {
        AnyOfBuilder::new()
            .description(Some("Who is limited: a text, or a list of parts."))
            .item(ObjectBuilder::new().schema_type(Type::String))
            .item(ArrayBuilder::new().items(Part::schema()).min_items(Some(1)))
            .into()
    }
}

impl ToSchema for Subject {
    fn name() -> Cow<'static, str> {
        "Key".into()
    }
}

impl PartialSchema for Part {
    fn schema() -> RefOr<Schema> {
        AnyOfBuilder::new()
            .item(ObjectBuilder::new().schema_type(Type::String).description(Some("Text.")))
            .item(field("b64", "Any bytes, in base64.", Some(BASE64)))
            .item(field("sha256", "The digest of a secret, in hex.", Some("^[0-9a-fA-F]{64}$")))
            .item(field("secret", "A secret in clear, which the service digests.", None))
            .into()
    }
}

impl ToSchema for Part {}

/// Padded, and without bits that mean nothing.
const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

fn field(name: &str, description: &str, pattern: Option<&str>) -> ObjectBuilder {
    let value = ObjectBuilder::new().schema_type(Type::String).pattern(pattern).description(Some(description));
    ObjectBuilder::new().schema_type(Type::Object).property(name, value).required(name)
}
