//! The records that stay of calls.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_gate::Caller;
use toolgate_gate::authority::invocations::Report;
use toolgate_gate::call::DetachedView;
use toolgate_gate::ports::ledger::InvocationFilter;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Cost;
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::credential::ServiceName;
use toolgate_model::id::{GrantId, InvocationId};
use toolgate_model::invocation::{IdempotencyKey, Invocation, InvocationStatus, cost_shape};
use toolgate_model::principal::PrincipalId;
use toolgate_model::service::ToolName;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::error::Denied;
use super::{detached, shapes};
use crate::body::{Body, optional_object};
use crate::caller::{Asked, Identified};
use crate::parameters::{Id, id, page};
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InvocationQuery {
    agent_id: Option<PrincipalId>,
    grant_id: Option<String>,
    service: Option<ServiceName>,
    tool: Option<ToolName>,
    status: Option<InvocationStatus>,
    intent_id: Option<ContextId>,
    task_id: Option<ContextId>,
    idempotency_key: Option<IdempotencyKey>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    limit: Option<u32>,
    cursor: Option<String>,
}

/// What the SDK's `record_invocation` sends. The result is taken and not kept.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportBody {
    grant_id: String,
    service: ServiceName,
    tool: ToolName,
    agent_id: PrincipalId,
    #[serde(default)]
    parameters: Option<Map<String, Value>>,
    status: Option<ReportedStatus>,
    #[serde(default, rename = "result")]
    _result: Option<Value>,
    error: Option<Value>,
    cost: Option<Value>,
    duration_ms: Option<u32>,
    idempotency_key: Option<IdempotencyKey>,
    #[serde(default, deserialize_with = "optional_object")]
    context: Option<GrantContext>,
}

/// How a call can have ended in the eyes of its caller.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReportedStatus {
    Denied,
    Error,
    Success,
    Timeout,
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<InvocationQuery>,
) -> Result<Json<Value>, Denied> {
    listed(&app, &caller, query, InvocationFilter::default()).await
}

pub(super) async fn of_intent(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<InvocationQuery>,
    Id(intent): Id<ContextId>,
) -> Result<Json<Value>, Denied> {
    listed(&app, &caller, query, InvocationFilter { intent: Some(intent), ..InvocationFilter::default() }).await
}

pub(super) async fn of_task(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<InvocationQuery>,
    Id(task): Id<ContextId>,
) -> Result<Json<Value>, Denied> {
    listed(&app, &caller, query, InvocationFilter { task: Some(task), ..InvocationFilter::default() }).await
}

/// The SDK's list: what was done through a grant, as a bare array.
pub(super) async fn of_grant(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<InvocationQuery>,
    Id(grant): Id<GrantId>,
) -> Result<Json<Value>, Denied> {
    let within = InvocationFilter { grant: Some(grant), ..InvocationFilter::default() };
    let request = page(query.limit.or(Some(50)), query.cursor.clone())?;
    let found = app.gate.administration.invocations(&caller, filter(query, within)?, request).await?;
    Ok(Json(found.items.iter().map(shape).collect()))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(id): Id<InvocationId>,
) -> Result<Json<Value>, Denied> {
    let invocation = match app.gate.administration.invocation(&caller, id).await {
        Ok(invocation) => invocation,
        // A detached call has a record once it was admitted or refused.
        Err(missing) => match app.gate.detached.detached_call(&caller, id).await {
            Ok(DetachedView::Open(call)) => return Ok(Json(detached::shape(&call))),
            // It ended between the two looks.
            Ok(DetachedView::Ended(_)) => app.gate.administration.invocation(&caller, id).await?,
            Err(_) => return Err(missing.into()),
        },
    };
    let mut shape = shape(&invocation);
    if let Value::Object(members) = &mut shape {
        let decisions = app.gate.administration.invocation_decisions(&caller, &invocation).await?;
        if !decisions.is_empty() {
            members.insert("hook_decisions".to_owned(), Value::Array(decisions.iter().map(decision).collect()));
        }
    }
    Ok(Json(shape))
}

pub(super) async fn report(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Body(body): Body<ReportBody>,
) -> Result<(StatusCode, Json<Value>), Denied> {
    let report = Report {
        grant: id(&body.grant_id)?,
        agent: body.agent_id,
        service: body.service,
        tool: body.tool,
        parameters: body.parameters.unwrap_or_default(),
        status: match body.status {
            None | Some(ReportedStatus::Success) => InvocationStatus::Success,
            Some(ReportedStatus::Denied) => InvocationStatus::Denied,
            Some(ReportedStatus::Error | ReportedStatus::Timeout) => InvocationStatus::Error,
        },
        error: error_text(body.error.as_ref())?,
        cost: cost(body.cost.as_ref())?,
        duration_ms: body.duration_ms.map(u64::from),
        idempotency_key: body.idempotency_key,
        context: body.context.unwrap_or_default(),
    };
    let invocation = app.gate.administration.report_invocation(&caller, report).await?;
    Ok((StatusCode::CREATED, Json(shape(&invocation))))
}

async fn listed(
    app: &App,
    caller: &Caller,
    query: InvocationQuery,
    within: InvocationFilter,
) -> Result<Json<Value>, Denied> {
    let request = page(query.limit, query.cursor.clone())?;
    let found = app.gate.administration.invocations(caller, filter(query, within)?, request).await?;
    Ok(Json(shapes::page("invocations", found, |invocation| shape(&invocation))))
}

/// What the query asks for, inside of what the path says.
fn filter(query: InvocationQuery, within: InvocationFilter) -> Result<InvocationFilter, Refusal> {
    let twice = |name: &str| {
        Err(Refusal::new(Code::InvalidField, format!("`{name}` is in the path already; leave it out"))
            .with("path", name))
    };
    match &query {
        InvocationQuery { intent_id: Some(_), .. } if within.intent.is_some() => return twice("intent_id"),
        InvocationQuery { task_id: Some(_), .. } if within.task.is_some() => return twice("task_id"),
        InvocationQuery { grant_id: Some(_), .. } if within.grant.is_some() => return twice("grant_id"),
        _ => {}
    }
    let grant = query.grant_id.as_deref().map(id::<GrantId>).transpose()?;
    Ok(InvocationFilter {
        agent: query.agent_id,
        grant: grant.or(within.grant),
        service: query.service,
        tool: query.tool.map(|tool| tool.as_str().to_owned()),
        status: query.status,
        intent: query.intent_id.or(within.intent),
        task: query.task_id.or(within.task),
        idempotency_key: query.idempotency_key,
        since: query.since,
        until: query.until,
        vault_owner: None,
    })
}

/// What of a decision belongs to the call that it is about: who said what, by which rule, and what came of it.
fn decision(data: &Value) -> Value {
    let kept =
        ["hook", "dialect", "effective", "guardians", "policy_version", "approval_id", "hash_before", "hash_after"];
    let members = kept.iter().filter_map(|name| Some(((*name).to_owned(), data.get(*name)?.clone())));
    Value::Object(members.collect())
}

fn shape(invocation: &Invocation) -> Value {
    let error = invocation.error.as_ref().map(|error| json!({"code": error.code, "message": error.reason}));
    json!({
        "id": invocation.id,
        "invocation_id": invocation.id,
        "grant_id": invocation.grant,
        "agent_id": invocation.agent,
        "actor": invocation.actor,
        "service": invocation.service,
        "tool": invocation.tool,
        "version": invocation.version,
        "status": invocation.status,
        "parameters": invocation.parameters,
        "arguments_hash": invocation.arguments_hash,
        "request_fingerprint": invocation.fingerprint,
        "result": null,
        "error": error,
        "http_status": invocation.http_status,
        "cost": cost_shape(invocation.cost),
        "duration_ms": invocation.duration_ms,
        "idempotency_key": invocation.idempotency_key,
        "context": invocation.context,
        "run_id": invocation.run_id(),
        "session_id": invocation.trace.session,
        "transport": invocation.trace.transport.as_str(),
        "reported": invocation.reported,
        "timestamp": invocation.created_at,
    })
}

/// The SDK sends a text; a structured error is told by its message.
fn error_text(error: Option<&Value>) -> Result<Option<String>, Refusal> {
    let text = match error {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => Some(text.as_str()),
        Some(Value::Object(members)) => members.get("message").and_then(Value::as_str),
        Some(_) => None,
    };
    match text.map(Line::parse) {
        Some(Ok(line)) => Ok(Some(line.as_str().to_owned())),
        _ => Err(wrong("error", "must be a line of text, or an object with one in `message`")),
    }
}

fn cost(cost: Option<&Value>) -> Result<Option<Cost>, Refusal> {
    let dollars = match cost {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(members)) => match members.get("estimated_cost_usd") {
            None | Some(Value::Null) => return Ok(None),
            Some(dollars) => dollars.as_f64(),
        },
        Some(dollars) => dollars.as_f64(),
    };
    let cost = dollars.and_then(Cost::from_dollars);
    cost.map(Some)
        .ok_or_else(|| wrong("cost", "must be an amount in US dollars, or an object with one in `estimated_cost_usd`"))
}

fn wrong(name: &str, reason: &str) -> Refusal {
    Refusal::new(Code::InvalidField, format!("`{name}` {reason}")).with("path", name)
}
