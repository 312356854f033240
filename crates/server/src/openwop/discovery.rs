//! `/.well-known/openwop`: what this host can do. Only what it really does is said, and only limits that hold.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use toolgate_gate::builtin::HTTP_FETCH_METHODS;
use toolgate_model::descriptor::SourceKind;

use crate::router::App;

/// How large an answer of a fetched address may be, and how long it may take.
const FETCH_BYTES: u64 = 1024 * 1024;
const FETCH_MILLISECONDS: u64 = 30_000;

/// Shows the document.
pub(super) async fn show(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let text = document(app.max_body).to_string();
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

fn document(max_body: usize) -> Value {
    json!({
        "protocolVersion": "1.0",
        "implementation": {"name": "toolgate", "version": env!("CARGO_PKG_VERSION"), "vendor": "toolgate"},
        // Toolgate drives no model: there is nothing to clarify, and no turn has an envelope.
        "supportedEnvelopes": [],
        "schemaVersions": {},
        "limits": {
            "clarificationRounds": 0, "schemaRounds": 0, "envelopesPerTurn": 0, "maxRequestBodyBytes": max_body
        },
        "toolCatalog": {
            "supported": true,
            "sources": [SourceKind::NodePack, SourceKind::Connector, SourceKind::HostExtension],
            "sessionLifecycle": true,
            "compactView": true
        },
        "toolHooks": {
            "supported": true, "prePostEvents": true, "perToolAuthorization": true, "perToolRateLimit": true
        },
        "authorization": {"supported": true, "failClosed": true},
        "httpClient": {
            "supported": true,
            "ssrfGuard": true,
            "maxResponseBodyBytes": FETCH_BYTES,
            "requestTimeoutMs": FETCH_MILLISECONDS,
            "methods": HTTP_FETCH_METHODS,
            "safeFetch": {"supported": true}
        },
        "credentials": {"supported": true, "scopes": ["tenant"], "encryptionAtRest": true}
    })
}

/// Another text has another tag; that it is short matters more than that nobody could find two texts with the same.
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
        let document = document(1024);
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
