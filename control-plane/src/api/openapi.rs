//! The description of the HTTP interface, made of the handlers' own: OpenAPI 3.1, a document for each listener.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Router, http::header::CONTENT_TYPE, routing};
use sluicegate_wire::{Problem, header};
use utoipa::{
    IntoParams, IntoResponses, PartialSchema, ToSchema,
    openapi::{
        Components, ContentBuilder, InfoBuilder, License, ObjectBuilder, OpenApi, Ref, RefOr, Required,
        ResponseBuilder, Type,
        path::{Parameter, ParameterBuilder, ParameterIn},
        response::Response,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_axum::router::OpenApiRouter;

use super::App;

/// Where the description is.
const PATH: &str = "/openapi.json";

/// Whose interface is described.
#[derive(Clone, Copy)]
pub(super) enum Listener {
    Data,
    Admin,
}

/// The routes, and their description beside them.
pub(super) fn described(routes: OpenApiRouter<Arc<App>>, listener: Listener) -> Router<Arc<App>> {
    let (router, mut document) = routes.split_for_parts();
    listener.introduce(&mut document);
    // Types of strings, numbers and lists have nothing that JSON can't hold.
    let text: Arc<str> = document.to_json().unwrap_or_default().into();
    router.route(PATH, routing::get(async move || ([(CONTENT_TYPE, "application/json")], text.to_string())))
}

impl Listener {
    fn introduce(self, document: &mut OpenApi) {
        let (title, description) = match self {
            Self::Data => (
                "Sluicegate",
                "Decides checks. Every answer carries the header x-sluicegate with the service's version; one without it is \
                 not the service's. Unknown fields of bodies are ignored.",
            ),
            Self::Admin => (
                "Sluicegate admin",
                "What operators ask and do. Unknown fields of bodies and queries are errors. What is done holds from the next \
                 check of every replica on; /v1/top is of this replica alone.",
            ),
        };
        let license = License::new(env!("CARGO_PKG_LICENSE"));
        document.info = InfoBuilder::new()
            .title(title)
            .version(env!("CARGO_PKG_VERSION"))
            .description(Some(description))
            .license(Some(license))
            .build();
        let components = document.components.get_or_insert_with(Components::new);
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        let token = token.description(Some("Where the listener's configuration has a token."));
        components.add_security_scheme("token", SecurityScheme::Http(token.build()));
        components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    }
}

/// A problem for each status, with when it comes.
fn problems(statuses: &[(&str, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let problem = |(status, when): &(&str, &str)| {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build();
        let response = ResponseBuilder::new().description(*when).content(Problem::CONTENT_TYPE, content);
        ((*status).to_owned(), response.build().into())
    };
    statuses.iter().map(problem).collect()
}

const TOKEN: (&str, &str) = ("401", "A token is wanted, and none or a wrong one was sent.");
const FOREIGN: (&str, &str) =
    ("403", "A page of another site asks, or by a host name that is not this machine's where no token is needed.");
const FAULT: (&str, &str) = ("500", "A fault in the service.");
const NO_STORE: (&str, &str) =
    ("503", "The store gave no answer, or the service is about to stop or has too much to do.");
const TOO_LARGE: (&str, &str) = ("413", "The body is over 256 kB, or has too many checks.");
const SLOW: (&str, &str) = ("408", "The body did not arrive in time.");
const UNREADABLE: (&str, &str) = ("400", "The body is not JSON, or a header or the query is not as described.");
const FIELD: (&str, &str) = ("422", "A field is wrong; the detail names it.");

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident: $statuses:expr;)+) => {$(
        $(#[$doc])*
        pub(super) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                problems(&$statuses)
            }
        }
    )+};
}

refusals! {
    /// Of health checks.
    RefusedHealth: [FAULT, NO_STORE];
    /// Of a request that only looks at the service itself.
    RefusedLook: [TOKEN, FOREIGN, FAULT, NO_STORE];
    /// Of a stream.
    RefusedStream: [
        TOKEN, FOREIGN, FAULT, ("503", "There are as many streams as there may be, or the service is about to stop."),
    ];
    /// Of checks, refunds and leases.
    RefusedCheck: [
        UNREADABLE, TOKEN, ("403", "Refunds are off, and leases with them, or a page of another site asks."), ("404", "There is no such policy."), SLOW, TOO_LARGE, FIELD, FAULT,
        NO_STORE,
    ];
    /// Of what an operator does.
    RefusedAction: [
        UNREADABLE, TOKEN, FOREIGN, ("404", "There is no such policy."), SLOW,
        ("409", "The policy has no ban, allows no overrides, or has no such limit."), TOO_LARGE, FIELD, FAULT, NO_STORE,
    ];
    /// Of what an operator asks.
    RefusedQuery: [
        UNREADABLE, TOKEN, FOREIGN, ("404", "There is no such policy or override."),
        ("409", "The policy allows no overrides, or the store holds something else."), FIELD, FAULT, NO_STORE,
    ];
}

/// The header by which callers say how long they wait.
pub(super) struct TimeLeft;

impl IntoParams for TimeLeft {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let ms = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(u64::MAX));
        let parameter = ParameterBuilder::new()
            .name(header::TIMEOUT_MS)
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some("How long the caller waits yet, in ms: there is no decision after that."))
            .schema(Some(ms.build()));
        vec![parameter.build()]
    }
}
