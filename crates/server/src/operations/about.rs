//! What a visitor without a key is told: what this is, and which of OpenIntent it speaks.

use axum::Json;
use axum::response::{Html, IntoResponse};
use http::header;
use serde::Serialize;

const PAGE: &str = "<!doctype html>\n<html lang=\"en\">\n<title>Toolgate</title>\n\
    <h1>Toolgate</h1>\n\
    <p>This gate stands between AI agents and the tools they use. Agents call tools at <code>POST /api/v1/tools/invoke</code>\n\
    with a key of this gate; credentials of the services never leave it.</p>\n\
    <ul>\n\
    <li><a href=\"/openapi.json\">API description</a></li>\n\
    <li><a href=\"/healthz\">Health</a> and <a href=\"/readyz\">readiness</a></li>\n\
    </ul>\n</html>\n";

/// The page at the root. It has no script and no style, and nothing can be put into it.
pub(super) async fn page() -> impl IntoResponse {
    ([(header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'")], Html(PAGE))
}

/// The discovery document of OpenIntent, in the shape that its reference server has.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Discovery {
    protocol: &'static str,
    version: &'static str,
    /// Only what is served here.
    capabilities: [&'static str; 4],
    rfcs: [&'static str; 1],
    open_api_url: &'static str,
}

pub(super) async fn openintent() -> Json<Discovery> {
    Json(Discovery {
        protocol: "OpenIntent Coordination Protocol",
        version: "0.1",
        capabilities: ["agents", "events", "access-control", "tools"],
        rfcs: ["RFC-0014"],
        open_api_url: "/openapi.json",
    })
}
