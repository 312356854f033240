//! `/.well-known/openwop`: the capabilities of this host. It lists only what is implemented, and only limits that are
//! enforced.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;
use toolgate_api::openwop::discovery::{
    Authorization, Capabilities, Credentials, HttpClient, Implementation, Limits, SafeFetch, ToolCatalog, ToolHooks,
};
use toolgate_gate::builtin::HTTP_FETCH_METHODS;
use toolgate_model::descriptor::SourceKind;

use crate::router::App;

/// The limits of a fetched response: size and duration.
const FETCH_BYTES: u64 = 1024 * 1024;
const FETCH_MILLISECONDS: u64 = 30_000;

pub(super) async fn show(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let text = json!(capabilities(app.max_body)).to_string();
    let tag = entity_tag(&text);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let unchanged = known.flat_map(|value| value.split(',')).any(|known| {
        let known = known.trim();
        known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag
    });
    let mut response = match unchanged {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn capabilities(max_body: usize) -> Capabilities {
    Capabilities {
        protocol_version: "1.0".to_owned(),
        implementation: Implementation {
            name: "toolgate".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            vendor: "toolgate".to_owned(),
        },
        // Toolgate runs no model: there is nothing to clarify, and no turn has an envelope.
        supported_envelopes: Vec::new(),
        schema_versions: BTreeMap::new(),
        limits: Limits {
            clarification_rounds: 0,
            schema_rounds: 0,
            envelopes_per_turn: 0,
            max_request_body_bytes: u64::try_from(max_body).unwrap_or(u64::MAX),
        },
        tool_catalog: ToolCatalog {
            supported: true,
            sources: vec![SourceKind::NodePack, SourceKind::Connector, SourceKind::HostExtension],
            session_lifecycle: true,
            compact_view: true,
        },
        tool_hooks: ToolHooks {
            supported: true,
            pre_post_events: true,
            per_tool_authorization: true,
            per_tool_rate_limit: true,
        },
        authorization: Authorization { supported: true, fail_closed: true },
        http_client: HttpClient {
            supported: true,
            ssrf_guard: true,
            max_response_body_bytes: FETCH_BYTES,
            request_timeout_ms: FETCH_MILLISECONDS,
            methods: HTTP_FETCH_METHODS.iter().map(|method| (*method).to_owned()).collect(),
            safe_fetch: SafeFetch { supported: true },
        },
        credentials: Credentials { supported: true, scopes: vec!["tenant".to_owned()], encryption_at_rest: true },
    }
}

/// A different text has a different tag; a short tag matters more here than collision resistance.
fn entity_tag(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_blocks_stand_at_the_root_and_are_closed() {
        let document = json!(capabilities(1024));
        for (block, members) in [
            ("limits", &["clarificationRounds", "envelopesPerTurn", "maxRequestBodyBytes", "schemaRounds"][..]),
            ("toolCatalog", &["compactView", "sessionLifecycle", "sources", "supported"]),
            ("toolHooks", &["perToolAuthorization", "perToolRateLimit", "prePostEvents", "supported"]),
            ("authorization", &["failClosed", "supported"]),
            ("credentials", &["encryptionAtRest", "scopes", "supported"]),
        ] {
            let names: BTreeSet<&str> = document[block].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(names, members.iter().copied().collect(), "{block}");
        }
        assert_eq!(document["protocolVersion"], "1.0");
        assert_eq!(document["limits"]["maxRequestBodyBytes"], 1024);
        assert_eq!(document["toolCatalog"]["sources"], json!(["node-pack", "connector", "host-extension"]));
    }

    #[test]
    fn another_document_has_another_tag() {
        assert_eq!(entity_tag("a"), entity_tag("a"));
        assert_ne!(entity_tag("a"), entity_tag("b"));
    }
}
