//! The documents of endpoint declarations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::id::VaultId;
use toolgate_model::principal::TenantId;

use super::*;
use crate::endpoint::endpoints;
use crate::parameters::{Limit, Nothing};

/// As it is read.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThingRequest {
    name: Option<String>,
    count: u32,
}

impl RequestBody for ThingRequest {}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThingQuery {
    limit: Option<Limit>,
    /// Only those of this
    /// tenant.
    tenant: Option<TenantId>,
    since: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Thing {
    id: VaultId,
    name: Option<String>,
    anything: Value,
}

mod things {
    use super::*;

    endpoints! {
        tag "things" = "For tests.";

        /// Create a
        /// thing
        ///
        /// With a description.
        Create = POST "/things" as "create_thing" {
            body: ThingRequest = {"count": 1},
            reply: CREATED Thing = "The thing.",
            errors: [NotFound],
        }

        /// List things
        List = GET "/things" as "list_things" {
            query: ThingQuery,
            reply: OK Vec<Thing> = "Things.",
            open: true,
        }

        /// Show a thing
        Show = GET "/things/{vault_id}" as "show_thing" {
            path: VaultId,
            reply: OK Thing = "The thing.",
        }
    }
}

const HEADING: Heading<'_> = Heading {
    title: "Things",
    summary: "",
    description: "",
    version: "1",
    codes: &["GRANT_NOT_FOUND"],
    errors: ErrorFormat::OpenIntent,
};

fn things() -> Value {
    document(&HEADING, &[things::group()]).unwrap()
}

#[test]
fn a_member_may_be_absent_in_a_request_and_is_always_there_in_a_reply() {
    let document = things();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["ThingRequest"]["required"], json!(["count"]));
    assert_eq!(schemas["ThingRequest"]["additionalProperties"], json!(false));
    assert_eq!(schemas["Thing"]["required"], json!(["anything", "id", "name"]));
    assert_eq!(schemas["Thing"]["properties"]["name"]["type"], json!(["string", "null"]));
    assert_eq!(schemas["Thing"]["properties"]["anything"], json!({}));
    let count = &schemas["ThingRequest"]["properties"]["count"];
    assert_eq!((&count["type"], &count["minimum"], count.get("format")), (&json!("integer"), &json!(0), None));
}

#[test]
fn an_operation_says_what_its_declaration_says() {
    let document = things();
    let create = &document["paths"]["/things"]["post"];
    assert_eq!(create["summary"], "Create a thing");
    assert_eq!(create["description"], "With a description.");
    assert_eq!(create["requestBody"]["required"], true);
    assert_eq!(create["requestBody"]["content"]["application/json"]["example"], json!({"count": 1}));
    let reply = &create["responses"]["201"]["content"]["application/json"]["schema"];
    assert_eq!(*reply, json!({"$ref": "#/components/schemas/Thing"}));
    assert!(create["responses"]["404"].is_object() && create["responses"]["415"].is_object());
    let list = &document["paths"]["/things"]["get"];
    assert_eq!(list["security"], json!([]));
    assert!(list.get("requestBody").is_none() && list["responses"].get("401").is_none());
}

#[test]
fn parameters_are_those_of_the_types_and_never_null() {
    let document = things();
    let list = document["paths"]["/things"]["get"]["parameters"].as_array().unwrap();
    let by_name = |name: &str| list.iter().find(|parameter| parameter["name"] == name).unwrap();
    assert_eq!(by_name("limit")["schema"]["type"], "integer");
    assert_eq!(by_name("tenant")["schema"], json!({"$ref": "#/components/schemas/Name"}));
    assert_eq!(by_name("tenant")["description"], "Only those of this tenant.");
    assert_eq!((&by_name("since")["required"], by_name("limit").get("required")), (&json!(true), None));
    let shown = &document["paths"]["/things/{vault_id}"]["parameters"][0];
    assert_eq!((&shown["name"], &shown["description"]), (&json!("vault_id"), &json!("The id of the vault.")));
}

#[test]
fn a_type_that_is_read_otherwise_than_it_is_written_is_found() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Both {
        name: Option<String>,
    }
    let mut schemas = Schemas::default();
    schemas.request::<Both>();
    schemas.reply::<Both>();
    assert_eq!(schemas.finish(), Err(DocumentError::Contradiction("Both".to_owned())));
}

#[test]
fn two_types_of_one_name_are_found() {
    mod other {
        #[derive(schemars::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is of interest")]
        pub struct Thing {
            other: String,
        }
    }
    let mut schemas = Schemas::default();
    schemas.reply::<Thing>();
    schemas.reply::<other::Thing>();
    assert_eq!(schemas.finish(), Err(DocumentError::Contradiction("Thing".to_owned())));
}

#[test]
fn what_is_described_twice_is_found() {
    mod other {
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct ErrorCode {
            other: String,
        }

        crate::endpoint::endpoints! {
            tag "other" = "For tests.";

            /// Show a code
            ShowCode = GET "/code" as "show_code" {
                reply: OK ErrorCode = "The code.",
            }
        }
    }
    let twice = |name: &str| Err(DocumentError::Twice(name.to_owned()));
    assert_eq!(document(&HEADING, &[other::group()]), twice("ErrorCode"));
    assert_eq!(document(&HEADING, &[things::group(), things::group()]), twice("POST /things"));
}

#[test]
fn a_stream_and_errors_of_its_own_are_described() {
    mod streams {
        use super::{Nothing, Thing};

        crate::endpoint::endpoints! {
            tag "streams" = "For tests.";

            /// Follow things
            Follow = GET "/stream" as "follow" {
                reply: OK Nothing = "Nothing.",
                stream: Events Thing = "Things.",
                errors: [NotFound, Gone = "It is over."],
            }

            /// Stop
            Stop = DELETE "/stream" as "stop" {
                reply: NO_CONTENT () = "Stopped.",
            }
        }
    }
    let document = document(&HEADING, &[streams::group()]).unwrap();
    let follow = &document["paths"]["/stream"]["get"]["responses"];
    assert_eq!(follow["410"]["description"], "It is over.");
    assert_eq!(follow["404"], json!({"$ref": "#/components/responses/NotFound"}));
    let events = &follow["200"]["content"]["text/event-stream"];
    assert_eq!(events["x-item-schema"], json!({"$ref": "#/components/schemas/Thing"}));
    assert_eq!(document["paths"]["/stream"]["delete"]["responses"]["204"], json!({"description": "Stopped."}));
}

#[test]
fn a_request_without_a_body_is_not_described_as_having_one() {
    assert!(Nothing::absent().is_some());
    assert!(things()["paths"]["/things/{vault_id}"]["get"].get("requestBody").is_none());
}
