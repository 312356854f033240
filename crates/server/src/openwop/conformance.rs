//! The endpoints of the public conformance suite, off unless the operator enables them. They need a key like everything
//! else, run their calls through the pipeline, and respond with what is in the log afterwards.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::routing::{MethodRouter, get, post};
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use toolgate_gate::call::{CallRequest, CallResult, ConformanceCall, Denial};
use toolgate_gate::ports::ledger::Freshness;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_gate::{Action, Caller};
use toolgate_model::event::EventPayload;
use toolgate_model::hook::RunId;
use toolgate_model::id::EventId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::rate_limit::RateLimit;

use super::approval_gate::approval_gate;
use super::caller::{Asked, PathName};
use super::error::Flat;
use super::reading::{Reading, Seen};
use crate::body::{self, Nothing};
use crate::caller::peer;
use crate::router::{App, Route};

/// The tool of a session that names none.
const SESSION_TOOL: &str = "openwop:conformance.session";

pub(super) fn routes() -> Vec<Route> {
    let route = |method: Method, path: &'static str, handler: MethodRouter<_>| Route { method, path, handler };
    vec![
        route(Method::POST, "/v1/host/sample/toolhooks/invoke", post(invoke)),
        route(Method::POST, "/v1/host/sample/tools/session-run", post(session_run)),
        route(Method::GET, "/v1/host/sample/test/runs/{runId}/events", get(events)),
        route(Method::POST, "/v1/host/sample/test/reset", post(reset)),
        route(Method::POST, "/v1/host/sample/authorization/decide", post(decide)),
        route(Method::POST, "/v1/host/sample/governance/approval-gate", post(approval_gate)),
        route(Method::POST, "/v1/host/sample/http/safe-fetch", post(safe_fetch)),
        route(Method::POST, "/v1/host/sample/http/safe-fetch-run", post(safe_fetch_run)),
    ]
}

/// A request to a conformance endpoint, with its caller and address.
pub(super) struct Sent<T> {
    pub(super) caller: Caller,
    pub(super) address: IpAddr,
    pub(super) body: T,
}

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Sent<T> {
    type Rejection = Flat;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Flat> {
        let (mut parts, body) = request.into_parts();
        let Asked(caller, Nothing {}) = Asked::from_request_parts(&mut parts, app).await?;
        let address = peer(&parts.extensions)?.address;
        let body = body::json(Request::from_parts(parts, body), app.max_body).await?;
        Ok(Self { caller, address, body })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct InvokeBody {
    principal: PrincipalId,
    tool_name: String,
    #[serde(default)]
    required_scopes: Vec<String>,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default)]
    simulate_rate_limit_exhausted: bool,
    #[serde(default)]
    simulate_tool_error: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SessionBody {
    tool_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DecideBody {
    principal: PrincipalId,
    action: String,
    #[expect(dead_code, reason = "scopes apply to actions, not to resources; accepted because clients may send it")]
    resource: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct FetchBody {
    url: String,
    #[serde(default)]
    init: Map<String, Value>,
    simulate_rebind_to: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct EventsQuery {
    r#type: Option<String>,
    causation_id: Option<String>,
    correlation_id: Option<String>,
    node_id: Option<String>,
}

async fn invoke(
    State(app): State<Arc<App>>,
    Sent { caller, address, body }: Sent<InvokeBody>,
) -> Result<Json<Value>, Flat> {
    let conformance_call = |limit| ConformanceCall {
        request: CallRequest {
            agent: Some(body.principal.clone()),
            ..CallRequest::new(body.tool_name.clone(), body.args.clone(), address)
        },
        required_scopes: body.required_scopes.clone(),
        limit,
        action: Action::Conformance { fails: body.simulate_tool_error },
    };
    let outcome = if body.simulate_rate_limit_exhausted {
        // A bucket for one call per day: it is emptied, then used once more. Other calls of this tool have no limit and
        // do not use it.
        let once = RateLimit::new(1, 86_400, None).map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
        match app.gate.conformance.run_conformance_call(caller.clone(), conformance_call(Some(once))).await {
            Err(denial) => Err(denial),
            Ok(_) => app.gate.conformance.run_conformance_call(caller.clone(), conformance_call(Some(once))).await,
        }
    } else {
        app.gate.conformance.run_conformance_call(caller.clone(), conformance_call(None)).await
    };
    Ok(Json(pair(&app, &caller, &outcome).await?))
}

async fn session_run(
    State(app): State<Arc<App>>,
    Sent { caller, address, body }: Sent<SessionBody>,
) -> Result<Json<Value>, Flat> {
    let tool = body.tool_id.unwrap_or_else(|| SESSION_TOOL.to_owned());
    let session = app.gate.conformance.conformance_session(&caller, &tool).await?;
    let mut completed = true;
    for name in ["web.search", "web.read"] {
        let conformance_call = ConformanceCall {
            request: CallRequest {
                run: Some(session.run.clone()),
                session: Some(session.id),
                ..CallRequest::new(name.to_owned(), Map::new(), address)
            },
            required_scopes: Vec::new(),
            limit: None,
            action: Action::Conformance { fails: false },
        };
        completed &= app.gate.conformance.run_conformance_call(caller.clone(), conformance_call).await.is_ok();
    }
    app.gate.administration.close_session(&caller, session.id, completed).await?;
    Ok(Json(json!({"runId": session.run, "sessionId": session.id, "toolId": session.tool})))
}

async fn events(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<EventsQuery>,
    PathName(run): PathName,
) -> Result<Json<Value>, Flat> {
    let found = match RunId::parse(&run) {
        Ok(run) => of_run(&app, &caller, &run).await?,
        // A name that is not valid for a run has no events.
        Err(_) => Vec::new(),
    };
    let mut found: Vec<_> = found.into_iter().map(|seen| seen.shown).collect();
    found.retain(|event| query.r#type.as_ref().is_none_or(|kind| event.kind == *kind));
    let is_cause = |wanted: &String, cause: Option<EventId>| cause.is_some_and(|cause| cause.to_string() == *wanted);
    found.retain(|event| query.causation_id.as_ref().is_none_or(|wanted| is_cause(wanted, event.causation_id)));
    if query.correlation_id.is_some() || query.node_id.is_some() {
        // Toolgate's events have neither.
        found.clear();
    }
    Ok(Json(json!({"events": found})))
}

/// There is nothing to reset: the log only grows, and these endpoints keep nothing else.
async fn reset(Asked(_, Nothing {}): Asked<Nothing>) -> Json<Value> {
    Json(json!({}))
}

async fn decide(State(app): State<Arc<App>>, Sent { caller, body, .. }: Sent<DecideBody>) -> Result<Json<Value>, Flat> {
    let allowed = app.gate.conformance.holds_scope(&caller, &body.principal, &body.action).await?;
    Ok(Json(json!({"allowed": allowed})))
}

async fn safe_fetch(
    State(app): State<Arc<App>>,
    Sent { caller, address, body }: Sent<FetchBody>,
) -> Result<Json<Value>, Flat> {
    let outcome = fetch(&app, &caller, address, body).await?;
    let mut response = pair(&app, &caller, &outcome).await?;
    if let Value::Object(members) = &mut response {
        members.extend(outcome_members(&outcome));
    }
    Ok(Json(response))
}

async fn safe_fetch_run(
    State(app): State<Arc<App>>,
    Sent { caller, address, body }: Sent<FetchBody>,
) -> Result<Json<Value>, Flat> {
    let outcome = fetch(&app, &caller, address, body).await?;
    let mut response = outcome_members(&outcome);
    response.insert("runId".to_owned(), json!(call_of(&outcome)?));
    Ok(Json(Value::Object(response)))
}

async fn fetch(
    app: &Arc<App>,
    caller: &Caller,
    address: IpAddr,
    body: FetchBody,
) -> Result<Result<CallResult, Denial>, Refusal> {
    let mut arguments = body.init;
    // A name that now resolves to another address is a request to that address: the guard checks addresses only.
    let url = match body.simulate_rebind_to {
        Some(address) if address.contains(':') => format!("http://[{address}]/"),
        Some(address) => format!("http://{address}/"),
        None => body.url,
    };
    arguments.insert("url".to_owned(), json!(url));
    let conformance_call = ConformanceCall {
        request: CallRequest::new("http.fetch".to_owned(), arguments, address),
        required_scopes: Vec::new(),
        limit: None,
        action: Action::Fetch,
    };
    Ok(app.gate.conformance.run_conformance_call(caller.clone(), conformance_call).await)
}

/// The outcome of a fetch in the terms of the suite.
fn outcome_members(outcome: &Result<CallResult, Denial>) -> Map<String, Value> {
    let blocked =
        |why: &str| Map::from_iter([("outcome".to_owned(), json!("blocked")), ("blocked".to_owned(), json!(why))]);
    match outcome {
        Ok(response) => match &response.outcome.error {
            Some(error) if error.details.get("blocked").is_some() => blocked("ssrf"),
            Some(_) => Map::from_iter([("outcome".to_owned(), json!("error"))]),
            None => {
                let status = response.outcome.result.as_ref().and_then(|result| result.get("status")).cloned();
                Map::from_iter([("outcome".to_owned(), json!("fetched")), ("status".to_owned(), json!(status))])
            }
        },
        Err(denial) => {
            let mut details = denial.refusal.details();
            match details.find(|(name, value)| *name == "upgrade" || (*name == "path" && *value == "parameters.url")) {
                Some(("upgrade", _)) => blocked("upgrade"),
                Some(_) => blocked("ssrf"),
                None => Map::from_iter([("outcome".to_owned(), json!("error"))]),
            }
        }
    }
}

/// The pair that a call left in the log.
async fn pair(app: &App, caller: &Caller, outcome: &Result<CallResult, Denial>) -> Result<Value, Refusal> {
    let call = RunId::parse(&call_of(outcome)?);
    let run = call.map_err(|_| Refusal::new(Code::Internal, "an id is not a valid name"))?;
    let events = of_run(app, caller, &run).await?;
    let called = |seen: &&Seen| matches!(seen.event.payload, EventPayload::AgentToolCalled(_));
    let returned =
        |seen: &&Seen| matches!(seen.event.payload, EventPayload::ToolForbidden(_)) || seen.event.returned().is_some();
    let (called, returned) = (events.iter().find(called), events.iter().find(returned));
    let payload = |seen: Option<&Seen>| seen.map(|seen| seen.shown.payload.clone());
    Ok(json!({"toolCalled": payload(called), "toolReturned": payload(returned)}))
}

pub(super) fn call_of(outcome: &Result<CallResult, Denial>) -> Result<String, Refusal> {
    match outcome {
        Ok(response) => Ok(response.invocation.to_string()),
        // A call without a record was not refused by the pipeline.
        Err(denial) => denial.invocation.map(|call| call.to_string()).ok_or_else(|| denial.refusal.clone()),
    }
}

pub(super) async fn of_run(app: &App, caller: &Caller, run: &RunId) -> Result<Vec<Seen>, Refusal> {
    let mut reading = Reading::of_run(run);
    let mut found = Vec::new();
    loop {
        let page = reading.page(app, caller, 1000, Freshness::Newest).await?;
        let end = page.end();
        let more = page.more;
        found.extend(page.events);
        match end {
            Some(end) if more => reading.place = end,
            _ => return Ok(found),
        }
    }
}
