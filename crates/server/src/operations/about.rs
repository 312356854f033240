//! What a visitor without a key sees: the product, and the supported parts of OpenIntent.

use axum::Json;
use axum::response::{Html, IntoResponse};
use http::header;
use toolgate_api::Endpoint;
use toolgate_api::operations::{Discovery, ShowOpenApi};

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

/// Only what is served here is listed.
pub(super) async fn openintent() -> Json<Discovery> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Json(Discovery {
        protocol: "OpenIntent Coordination Protocol".to_owned(),
        version: "0.1".to_owned(),
        capabilities: texts(&[
            "intents",
            "events",
            "agents",
            "state-patches",
            "optimistic-concurrency",
            "cost-tracking",
            "leasing",
            "access-control",
            "tools",
        ]),
        rfcs: texts(&["RFC-0001", "RFC-0003", "RFC-0009", "RFC-0012", "RFC-0013", "RFC-0014"]),
        open_api_url: ShowOpenApi::PATH.to_owned(),
    })
}
