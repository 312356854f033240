//! Calling a tool: the RFC's shape (`grant_id`, `tool`) and the SDK's (`tool_name`, `agent_id`).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};
use toolgate_api::reply::ErrorCode;
use toolgate_api::tools::{self as api, CallFailure, CallResponse, CallStep, FailedCall, SucceededCall};
use toolgate_gate::call::{CallRequest, CallResult, Invoked, Presence};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_gate::request_context::in_current_request;
use toolgate_model::context::GrantContext;
use toolgate_model::id::{GrantId, SessionId};
use toolgate_model::invocation::InvocationStatus;
use toolgate_model::text::check_identifier;

use super::detached::{self, Preference};
use super::error::{Denied, status};
use super::progress;
use crate::body::Body;
use crate::caller::Calling;
use crate::limiter::BodyShare;
use crate::parameters::id;
use crate::router::App;

/// The maximum length of an agent's reasoning, in bytes.
const REASONING_LIMIT: usize = 8 * 1024;

/// Reads and makes the call in its own task: a client that disconnects while the request is read cancels the call, and
/// its refusal is recorded nevertheless.
pub(super) async fn invoke(State(app): State<Arc<App>>, request: Request) -> Result<Response, Denied> {
    let (_waiting, presence) = Presence::new();
    // Boxed, because a task copies its future several times while it is set up, and this one is large.
    let responding = tokio::spawn(in_current_request(Box::pin(respond(app, request, presence))));
    let broken = |_| Refusal::new(Code::Internal, "the call failed inside the gate; see the gate's log");
    responding.await.map_err(broken)?
}

async fn respond(app: Arc<App>, request: Request, presence: Presence) -> Result<Response, Denied> {
    let (mut parts, body) = request.into_parts();
    let Calling { caller, agent, address } = Calling::from_request_parts(&mut parts, &app).await?;
    let headers = parts.headers.clone();
    // The call, and with it the parsed body, may outlive its request.
    let _held = parts.extensions.get::<Arc<BodyShare>>().cloned();
    let Body(body) = Body::<api::CallRequest>::from_request(Request::from_parts(parts, body), &app).await?;
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
        approval_session: body.approval_session.map(|session| (session.name, session.workspace)),
        approval_wait: body.approval_ttl_seconds.map(|seconds| Duration::from_secs(u64::from(seconds))),
        label: body.call_id,
        observer: None,
        stream: None,
        reasoning: body.reasoning,
        input: None,
        client: None,
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

/// The response of RFC-0014 §3.3, with what its SDK reads (`tool_name`, `message`) and our additions.
pub(super) fn result_response(result: CallResult) -> Response {
    let replayed = result.replayed;
    let (status, response) = ended(Ok(result));
    // Serialized in one go: this is the response to every call.
    let Ok(body) = serde_json::to_vec(&response) else {
        return Denied::from(Refusal::new(Code::Internal, "the response cannot be written as JSON")).into_response();
    };
    let mut response = (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response();
    if replayed {
        let name = HeaderName::from_static("idempotent-replayed");
        response.headers_mut().insert(name, HeaderValue::from_static("true"));
    }
    response
}

/// The last step of a call that is followed step by step.
pub(super) fn last_step(outcome: Result<CallResult, Denied>) -> CallStep {
    let (status, body) = ended(outcome);
    CallStep::Answered { status: status.as_u16(), body: Box::new(body) }
}

/// The status and the body for a call that has ended.
fn ended(outcome: Result<CallResult, Denied>) -> (StatusCode, CallResponse) {
    let result = match outcome {
        Ok(result) => result,
        Err(denied) => return (denied.status(), CallResponse::Refused(denied.body())),
    };
    let status = http_status(&result);
    let tool_name = result.service.with_tool(result.tool.as_str());
    let (outcome, grant_id) = (result.outcome, result.grant);
    let response = match outcome.error {
        None => CallResponse::Succeeded(SucceededCall {
            invocation_id: result.invocation,
            status: outcome.status,
            tool_name,
            grant_id,
            result: outcome.result.unwrap_or_default(),
            error: (),
            cost: outcome.cost,
            duration_ms: outcome.duration_ms,
            timestamp: outcome.timestamp,
            truncated: outcome.truncated,
            replayed: result.replayed,
        }),
        Some(error) => CallResponse::Failed(FailedCall {
            invocation_id: result.invocation,
            status: outcome.status,
            tool_name,
            grant_id,
            result: outcome.result.unwrap_or_default(),
            error: CallFailure {
                code: ErrorCode(error.code),
                message: error.message.clone(),
                grant_id,
                details: error.details,
            },
            cost: outcome.cost,
            duration_ms: outcome.duration_ms,
            timestamp: outcome.timestamp,
            truncated: outcome.truncated,
            replayed: result.replayed,
            message: error.message,
        }),
    };
    (status, response)
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
