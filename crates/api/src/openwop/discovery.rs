//! The capabilities and limits of the host.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_model::descriptor::SourceKind;

use crate::document::merge;
use crate::endpoint::endpoints;
use crate::schemas::Schemas;

endpoints! {
    tag "discovery" = "The capabilities of this host. Needs no key and reveals nothing about tenants.";

    /// Show the capabilities of this host
    ShowCapabilities = GET "/.well-known/openwop" as "show_capabilities" {
        reply: OK Capabilities = "The capabilities, each block at the root.",
        errors: [TooMany],
        open: true,
        amend: describe_unchanged,
    }

    /// Show this document
    ShowOpenWopOpenApi = GET "/v1/openapi.json" as "show_openwop_openapi" {
        reply: OK Map<String, Value> = "The document.",
        errors: [TooMany],
        open: true,
    }
}

fn describe_unchanged(operation: &mut Value, _: &mut Schemas) {
    merge(operation, json!({"responses": {"304": {"description": "Not modified since the tag in `If-None-Match`."}}}));
}

/// The capabilities and limits of this host.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"))]
    pub protocol_version: String,
    pub implementation: Implementation,
    pub supported_envelopes: Vec<String>,
    pub schema_versions: BTreeMap<String, u64>,
    pub limits: Limits,
    pub tool_catalog: ToolCatalog,
    pub tool_hooks: ToolHooks,
    pub authorization: Authorization,
    pub http_client: HttpClient,
    pub credentials: Credentials,
}

macro_rules! blocks {
    ($($name:ident { $($member:ident: $kind:ty,)+ })+) => {$(
        #[derive(Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        #[schemars(inline)]
        pub struct $name {
            $(pub $member: $kind,)+
        }
    )+};
}

blocks! {
    Implementation {
        name: String,
        version: String,
        vendor: String,
    }
    Limits {
        clarification_rounds: u64,
        schema_rounds: u64,
        envelopes_per_turn: u64,
        max_request_body_bytes: u64,
    }
    ToolCatalog {
        supported: bool,
        sources: Vec<SourceKind>,
        session_lifecycle: bool,
        compact_view: bool,
    }
    ToolHooks {
        supported: bool,
        pre_post_events: bool,
        per_tool_authorization: bool,
        per_tool_rate_limit: bool,
    }
    Authorization {
        supported: bool,
        fail_closed: bool,
    }
    HttpClient {
        supported: bool,
        ssrf_guard: bool,
        max_response_body_bytes: u64,
        request_timeout_ms: u64,
        methods: Vec<String>,
        safe_fetch: SafeFetch,
    }
    SafeFetch {
        supported: bool,
    }
    Credentials {
        supported: bool,
        scopes: Vec<String>,
        encryption_at_rest: bool,
    }
}
