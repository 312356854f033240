//! Calling a tool: the RFC's shape (`grant_id`, `tool`) and the SDK's (`tool_name`, `agent_id`).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_gate::call::{CallError, CallRequest, CallResult, Invoked, Presence};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::CallLabel;
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::hook::RunId;
use toolgate_model::id::{GrantId, InvocationId, SessionId};
use toolgate_model::invocation::{IdempotencyKey, InvocationStatus};
use toolgate_model::principal::PrincipalId;
use toolgate_model::service::ServiceVersion;
use toolgate_model::text::check_identifier;
use toolgate_model::time::Timestamp;

use super::detached::{self, Preference};
use super::error::{Denied, status};
use super::progress;
use crate::approvals::sessions::SessionBody;
use crate::body::{Body, optional_object};
use crate::caller::Calling;
use crate::limiter::BodyShare;
use crate::parameters::id;
use crate::router::App;

/// The longest that an agent may say why it makes a call, in bytes.
const REASONING_LIMIT: usize = 8 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InvokeBody {
    tool: Option<String>,
    tool_name: Option<String>,
    version: Option<ServiceVersion>,
    grant_id: Option<String>,
    agent_id: Option<PrincipalId>,
    parameters: Option<Map<String, Value>>,
    idempotency_key: Option<IdempotencyKey>,
    #[serde(default, deserialize_with = "optional_object")]
    approval_session: Option<SessionBody>,
    approval_ttl_seconds: Option<u32>,
    call_id: Option<CallLabel>,
    reasoning: Option<String>,
    #[serde(default, deserialize_with = "optional_object")]
    context: Option<ContextBody>,
}

/// The RFC repeats the agent here.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextBody {
    intent_id: Option<ContextId>,
    plan_id: Option<ContextId>,
    task_id: Option<ContextId>,
    run_id: Option<RunId>,
    session_id: Option<String>,
    agent_id: Option<PrincipalId>,
}

/// Reads and makes the call in a task of its own: a client that disconnects while the request is read takes the call back,
/// and its refusal is recorded all the same.
pub(super) async fn invoke(State(app): State<Arc<App>>, request: Request) -> Result<Response, Denied> {
    let (_waiting, presence) = Presence::new();
    // Boxed, because a task copies its future several times while it is set up, and this one is large.
    let responding = tokio::spawn(Box::pin(respond(app, request, presence)));
    let broken = |_| Refusal::new(Code::Internal, "the call broke off inside the gate; see its log");
    responding.await.map_err(broken)?
}

async fn respond(app: Arc<App>, request: Request, presence: Presence) -> Result<Response, Denied> {
    let (mut parts, body) = request.into_parts();
    let Calling { caller, agent, address } = Calling::from_request_parts(&mut parts, &app).await?;
    let headers = parts.headers.clone();
    // The call may outlive its request, and with it what was read from the body.
    let _held = parts.extensions.get::<Arc<BodyShare>>().cloned();
    let Body(body) = Body::<InvokeBody>::from_request(Request::from_parts(parts, body), &app).await?;
    let context = body.context.unwrap_or_default();
    let request = CallRequest {
        tool: one("tool", [body.tool, body.tool_name])?.ok_or_else(|| missing("tool"))?,
        version: body.version,
        grant: body.grant_id.as_deref().map(id::<GrantId>).transpose()?,
        agent: one("agent_id", [body.agent_id, context.agent_id, agent])?,
        parameters: body.parameters.unwrap_or_default(),
        idempotency_key: body.idempotency_key,
        context: GrantContext { intent_id: context.intent_id, plan_id: context.plan_id, task_id: context.task_id },
        run: context.run_id,
        session: context.session_id.as_deref().map(id::<SessionId>).transpose()?,
        approval_session: body.approval_session.map(|SessionBody { name, workspace }| (name, workspace)),
        approval_wait: body.approval_ttl_seconds.map(|seconds| Duration::from_secs(u64::from(seconds))),
        label: body.call_id,
        observer: None,
        reasoning: body.reasoning,
        presence: Some(presence),
        address,
    };
    if let Err(error) = check_identifier(&request.tool) {
        return Err(Refusal::new(Code::InvalidField, format!("`tool` {error}")).with("path", "tool").into());
    }
    if request.reasoning.as_ref().is_some_and(|reasoning| reasoning.len() > REASONING_LIMIT) {
        let reason = format!("`reasoning` may have at most {REASONING_LIMIT} bytes");
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "reasoning").into());
    }
    if progress::is_wanted(&headers) {
        return Ok(progress::stream(app, caller, request));
    }
    let preference = Preference::of(&headers)?;
    let (reader, detaching) = (caller.clone(), preference.detached);
    let invoked = match detaching {
        true => app.gate.pipeline.detach(caller, request).await.map(Invoked::Detached),
        false => app.gate.pipeline.invoke_or_detach(caller, request).await,
    };
    let outcome = match invoked {
        Ok(Invoked::Detached(id)) => return detached::accepted(&app, &reader, id, preference.wait).await,
        Ok(Invoked::Completed(result)) => Ok(*result),
        Err(denial) => Err(denial),
    };
    app.metrics.called(&outcome);
    Ok(result_response(outcome?))
}

/// The one value of a field that has several names.
fn one<T: PartialEq, const N: usize>(name: &str, given: [Option<T>; N]) -> Result<Option<T>, Refusal> {
    let mut found: Option<T> = None;
    for value in given.into_iter().flatten() {
        if found.as_ref().is_some_and(|found| *found != value) {
            let reason = format!("`{name}` is given twice, with different values");
            return Err(Refusal::new(Code::InvalidField, reason).with("path", name));
        }
        found = Some(value);
    }
    Ok(found)
}

fn missing(name: &str) -> Refusal {
    Refusal::new(Code::InvalidField, format!("`{name}` is missing")).with("path", name)
}

/// The answer of RFC-0014 §3.3, with what its SDK reads (`tool_name`, `message`) and what we add.
#[derive(Serialize)]
struct ResponseShape {
    invocation_id: InvocationId,
    status: InvocationStatus,
    tool_name: String,
    grant_id: Option<GrantId>,
    result: Option<Value>,
    error: Option<Value>,
    cost: Value,
    duration_ms: u64,
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

pub(super) fn result_response(result: CallResult) -> Response {
    let status = http_status(&result);
    let replayed = result.replayed;
    let error = result.outcome.error.as_ref().map(|error| error_shape(error, &result));
    let shape = ResponseShape {
        invocation_id: result.invocation,
        status: result.outcome.status,
        tool_name: result.service.with_tool(result.tool.as_str()),
        grant_id: result.grant,
        result: result.outcome.result,
        error,
        cost: result.outcome.cost,
        duration_ms: result.outcome.duration_ms,
        timestamp: result.outcome.timestamp,
        truncated: result.outcome.truncated,
        replayed,
        message: result.outcome.error.map(|error| error.message),
    };
    // Written in one go: this is the answer to every call.
    let Ok(body) = serde_json::to_vec(&shape) else {
        return Denied::from(Refusal::new(Code::Internal, "the answer cannot be written as JSON")).into_response();
    };
    let mut response = (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response();
    if replayed {
        let name = HeaderName::from_static("idempotent-replayed");
        response.headers_mut().insert(name, HeaderValue::from_static("true"));
    }
    response
}

fn error_shape(error: &CallError, result: &CallResult) -> Value {
    let mut shape = error.details.clone();
    shape.insert("code".to_owned(), json!(error.code));
    shape.insert("message".to_owned(), json!(error.message));
    shape.insert("grant_id".to_owned(), json!(result.grant));
    Value::Object(shape)
}

fn http_status(result: &CallResult) -> StatusCode {
    match (&result.outcome.status, &result.outcome.error) {
        (InvocationStatus::Success, _) | (_, None) => StatusCode::OK,
        (_, Some(error)) if error.details.contains_key("timed_out") => StatusCode::GATEWAY_TIMEOUT,
        (_, Some(error)) => {
            let code = Code::ALL.iter().find(|code| code.as_str() == error.code);
            code.map_or(StatusCode::BAD_GATEWAY, |code| status(*code))
        }
    }
}
