//! The card of a peer, for callers that may use something of it. It leads to the gate.

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;
use toolgate_gate::Caller;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::a2a::rewrite_card;
use toolgate_model::credential::ServiceName;
use toolgate_model::merkle::sha256;

use super::PATH;
use crate::openintent::error::Denied;
use crate::router::App;

/// The card as the gate serves it; the same 404 for a peer that does not exist and for one that the caller may not use.
pub(super) async fn serve(app: &App, caller: &Caller, parts: &Parts, peer: Option<ServiceName>) -> Response {
    let found = match &peer {
        Some(peer) => app.gate.mounts.accepted_card(caller, peer).await,
        None => Ok(None),
    };
    let (card, peer) = match (found, peer) {
        (Ok(Some(card)), Some(peer)) => (card, peer),
        (Err(refusal), _) => return Denied::from(refusal).into_response(),
        _ => return Denied::from(Refusal::new(Code::ServiceNotFound, "there is no such agent")).into_response(),
    };
    let card = rewrite_card(&card, &card, &address(app, &parts.headers, &peer));
    let body = card.to_string();
    let tag = format!("\"{}\"", sha256(body.as_bytes()).to_hex());
    let mut response = match parts.headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag.as_str()) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=60"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// An extended card, rewritten like the public one.
pub(super) async fn extended(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    peer: &ServiceName,
    card: &Value,
) -> Result<Value, Refusal> {
    let accepted = app.gate.mounts.accepted_card(caller, peer).await?;
    let accepted = accepted.ok_or_else(|| Refusal::new(Code::ServiceNotFound, "there is no such agent"))?;
    Ok(rewrite_card(card, &accepted, &address(app, headers, peer)))
}

/// The address of a peer at this gate: below the public URL, or where the client has reached it.
fn address(app: &App, headers: &HeaderMap, peer: &ServiceName) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let base = app.mcp.public_url().map_or_else(|| format!("http://{host}"), str::to_owned);
    format!("{}{PATH}/{peer}", base.trim_end_matches('/'))
}
