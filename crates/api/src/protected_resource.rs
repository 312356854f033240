//! Protected-resource metadata (RFC 9728).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::endpoints;

endpoints! {
    tag "access tokens" = "For clients that look for an issuer of access tokens. Needs no key.";

    /// Show which issuers of access tokens the gate trusts
    ///
    /// 404 if none is configured.
    ShowResourceMetadata = GET "/.well-known/oauth-protected-resource" as "show_resource_metadata" {
        reply: OK ResourceMetadata = "The metadata of the gate.",
        errors: [NotFound, TooMany],
        open: true,
    }

    /// Show which issuers of access tokens the MCP endpoint trusts
    ///
    /// 404 if none is configured.
    ShowMcpResourceMetadata = GET "/.well-known/oauth-protected-resource/mcp" as "show_mcp_resource_metadata" {
        reply: OK ResourceMetadata = "The metadata of `/mcp`.",
        errors: [NotFound, TooMany],
        open: true,
    }
}

/// The metadata of a protected resource.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResourceMetadata {
    /// What a client names as `resource` when it asks for a token.
    pub resource: String,
    pub authorization_servers: Vec<String>,
    /// The scopes that a token must have.
    pub scopes_supported: Vec<String>,
    pub bearer_methods_supported: Vec<BearerMethod>,
    pub resource_name: String,
}

/// Where a token is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BearerMethod {
    /// In the header `Authorization`.
    Header,
}
