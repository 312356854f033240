//! The endpoints: who calls, for which agent, and in which form.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, header};
use serde_json::Map;
use toolgate_gate::Caller;
use toolgate_gate::call::Presence;
use toolgate_gate::ports::ledger::Freshness;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_gate::request_context::in_current_request;
use toolgate_model::a2a::{A2aError, ErrorKind};
use toolgate_model::credential::ServiceName;

use super::call::{Asked, Context};
use super::resource::{self, Resource};
use super::{PATH, card, outcome, spoken::Spoken};
use crate::limiter::BodyShare;
use crate::openintent::error::Denied;
use crate::router::App;
use crate::{body, caller};

/// Media types of bodies. The second is the one of 1.0.1.
const JSON: [&str; 2] = ["application/json", "application/a2a+json"];

/// JSON-RPC: one request in each POST.
pub(super) async fn json_rpc(State(app): State<Arc<App>>, request: Request) -> Response {
    in_own_task(app, request, |app, request, presence| async move {
        let (caller, parts, body, address) = match identified(&app, request).await {
            Ok(identified) => identified,
            Err(response) => return *response,
        };
        let _held = parts.extensions.get::<Arc<BodyShare>>().cloned();
        let unread = Spoken {
            binding: toolgate_model::a2a::Binding::JsonRpc,
            version: toolgate_model::a2a::Version::V1_0,
            id: serde_json::Value::Null,
        };
        let bytes = match read(&app, &parts, body, true).await {
            Ok(bytes) => bytes,
            Err(refusal) => return unread.error(&outcome::refused(&refusal)),
        };
        let named = parts.uri.path().strip_prefix(PATH).unwrap_or_default().trim_matches('/').to_owned();
        match super::json_rpc::read(&parts, &bytes) {
            Ok(asked) => call(app, caller, &named, asked, (parts.headers, presence, address)).await,
            Err(unreadable) => unreadable.0.error(&unreadable.1),
        }
    })
    .await
}

/// HTTP and JSON, and the card.
pub(super) async fn resource(State(app): State<Arc<App>>, request: Request) -> Response {
    in_own_task(app, request, |app, request, presence| async move {
        let (caller, parts, body, address) = match identified(&app, request).await {
            Ok(identified) => identified,
            Err(response) => return *response,
        };
        let _held = parts.extensions.get::<Arc<BodyShare>>().cloned();
        let Some((named, found)) = resource::route(&parts.method, parts.uri.path()) else {
            let refusal = Refusal::new(Code::RouteNotFound, "there is nothing at this path; see docs/a2a.md");
            return Denied::from(refusal).into_response();
        };
        let routed = match found {
            Resource::Card => return card::serve(&app, &caller, &parts, ServiceName::parse(&named).ok()).await,
            Resource::Operation(routed) => routed,
        };
        let spoken = routed.spoken();
        let bytes = match read(&app, &parts, body, false).await {
            Ok(bytes) => bytes,
            Err(refusal) => return spoken.error(&outcome::refused(&refusal)),
        };
        match routed.read(&parts, &bytes) {
            Ok(asked) => call(app, caller, &named, asked, (parts.headers, presence, address)).await,
            Err(error) => spoken.error(&error),
        }
    })
    .await
}

/// A client that disconnects takes a call back that is not admitted, and the refusal is recorded all the same.
async fn in_own_task<F, R>(app: Arc<App>, request: Request, respond: F) -> Response
where
    F: FnOnce(Arc<App>, Request, Presence) -> R + Send + 'static,
    R: Future<Output = Response> + Send + 'static,
{
    let (_waiting, presence) = Presence::new();
    let responding = tokio::spawn(in_current_request(Box::pin(respond(app, request, presence))));
    responding.await.unwrap_or_else(|_| {
        let reason = "the request broke off inside the gate; see its log";
        Denied::from(Refusal::new(Code::Internal, reason)).into_response()
    })
}

async fn identified(app: &App, request: Request) -> Result<(Caller, Parts, Body, IpAddr), Box<Response>> {
    let refuse = |refusal: Refusal| Box::new(Denied::from(refusal).into_response());
    let (mut parts, body) = request.into_parts();
    let address = caller::peer(&parts.extensions).map_err(refuse)?.address;
    let from_elsewhere = |reason: &str| refuse(Refusal::new(Code::Forbidden, reason));
    app.mcp.check_origin(&parts, address).map_err(from_elsewhere)?;
    let (caller, agent) = caller::identify(&mut parts, app, Freshness::Recent).await.map_err(refuse)?;
    if agent.is_some_and(|agent| agent != *caller.id()) {
        let reason = "a client of this protocol acts for nobody but the principal of its key; leave X-Agent-ID out";
        return Err(refuse(Refusal::new(Code::InvalidField, reason)));
    }
    Ok((caller, parts, body, address))
}

async fn read(app: &App, parts: &Parts, body: Body, needed: bool) -> Result<zeroize::Zeroizing<Vec<u8>>, Refusal> {
    let request = Request::from_parts(parts.clone(), body);
    let bytes = body::read(request, app.max_body).await?;
    if (needed || !bytes.is_empty()) && !is_json(&parts.headers) {
        let reason = "send JSON, with the header `Content-Type: application/json`";
        return Err(Refusal::new(Code::UnsupportedMediaType, reason));
    }
    Ok(bytes)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    JSON.iter().any(|known| essence.eq_ignore_ascii_case(known))
}

async fn call(
    app: Arc<App>,
    caller: Caller,
    named: &str,
    asked: Asked,
    (headers, presence, address): (HeaderMap, Presence, IpAddr),
) -> Response {
    let Asked { operation, params, spoken } = asked;
    let Ok(peer) = ServiceName::parse(named) else {
        return spoken.error(&A2aError::new(ErrorKind::TaskNotFound, "there is no such agent", Map::new()));
    };
    let context = Context { app, caller, peer, spoken, operation, headers, presence, address };
    context.respond(params).await
}
