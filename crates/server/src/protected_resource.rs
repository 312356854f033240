//! Protected-resource metadata (RFC 9728): which issuers of access tokens the gate trusts, for clients that look for one.
//! It is made from the configuration alone; nothing in a request changes it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use toolgate_api::Endpoint;
use toolgate_api::protected_resource::{BearerMethod, ResourceMetadata, ShowMcpResourceMetadata, ShowResourceMetadata};
use toolgate_gate::refusal::{Code, Refusal};

use crate::mcp;
use crate::mount::special;
use crate::openintent::error::Denied;
use crate::router::{App, Route};

/// The metadata about access tokens for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedResource {
    /// The URL of the gate, without a slash at its end.
    pub public_url: String,
    pub authorization_servers: Vec<String>,
    /// The scopes that a token must have.
    pub scopes: Vec<String>,
}

impl ProtectedResource {
    /// Where clients of `/mcp` find the metadata.
    pub(crate) fn mcp_metadata(&self) -> String {
        format!("{}{}", self.public_url, ShowMcpResourceMetadata::PATH)
    }

    fn metadata(&self, path: &str) -> ResourceMetadata {
        ResourceMetadata {
            resource: format!("{}{path}", self.public_url),
            authorization_servers: self.authorization_servers.clone(),
            scopes_supported: self.scopes.clone(),
            bearer_methods_supported: vec![BearerMethod::Header],
            resource_name: "Toolgate".to_owned(),
        }
    }
}

/// The routes, which need no key.
pub fn routes() -> Vec<Route> {
    vec![special::<ShowResourceMetadata, _, _>(gate), special::<ShowMcpResourceMetadata, _, _>(mcp_server)]
}

async fn gate(State(app): State<Arc<App>>) -> Response {
    published(&app, "")
}

async fn mcp_server(State(app): State<Arc<App>>) -> Response {
    published(&app, mcp::PATH)
}

fn published(app: &App, path: &str) -> Response {
    match &app.protected_resource {
        Some(resource) => {
            // A page of another origin may be the client, and the document is the same for everybody.
            let headers = [(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"), (header::CACHE_CONTROL, "max-age=3600")];
            (headers, Json(resource.metadata(path))).into_response()
        }
        None => {
            let reason = "this gate accepts keys only; no issuer of access tokens is configured";
            Denied::from(Refusal::new(Code::RouteNotFound, reason)).into_response()
        }
    }
}
