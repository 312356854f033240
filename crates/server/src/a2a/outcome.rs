//! What came of a call, in the words of the protocol.

use serde_json::{Map, Value, json};
use toolgate_gate::call::{CallError, CallOutcome, Denial};
use toolgate_gate::refusal::{Code, Kind, Refusal};
use toolgate_model::a2a::{A2aError, ErrorKind, member};
use toolgate_model::id::InvocationId;

/// The result of an agent without its envelope, or its error. Both bindings carry the same results.
pub(super) fn body(value: Value) -> Result<Value, A2aError> {
    let Value::Object(mut members) = value else { return Ok(value) };
    if !members.contains_key("jsonrpc") {
        return Ok(Value::Object(members));
    }
    match members.remove("error").filter(|error| !error.is_null()) {
        Some(error) => Err(A2aError::of_json_rpc(&error)),
        None => Ok(members.remove("result").unwrap_or(Value::Null)),
    }
}

/// What a call has returned.
pub(super) fn returned(invocation: InvocationId, outcome: CallOutcome) -> Result<Value, A2aError> {
    let Some(error) = outcome.error else { return body(outcome.result.unwrap_or(Value::Null)) };
    let status = error.details.get("http_status").and_then(Value::as_u64);
    match (status.and_then(|status| u16::try_from(status).ok()), outcome.result) {
        (Some(status), Some(result)) if error.code == Code::ServiceError.as_str() => match body(result) {
            Ok(body) => Err(A2aError::of_http(status, &body)),
            Err(error) => Err(error),
        },
        _ => Err(of_error(Some(invocation), &error)),
    }
}

/// A call that was refused.
pub(super) fn denied(denial: &Denial) -> A2aError {
    let refusal = &denial.refusal;
    translated(refusal.code(), refusal.kind(), refusal.reason(), refusal.details(), denial.invocation)
}

/// A refusal without a call.
pub(super) fn refused(refusal: &Refusal) -> A2aError {
    translated(refusal.code(), refusal.kind(), refusal.reason(), refusal.details(), None)
}

fn of_error(invocation: Option<InvocationId>, error: &CallError) -> A2aError {
    let code = Code::ALL.iter().copied().find(|code| code.as_str() == error.code).unwrap_or(Code::Internal);
    let details = error.details.iter().map(|(name, value)| (name.as_str(), value));
    translated(code, code.kind(), &error.message, details, invocation)
}

fn translated<'a>(
    code: Code,
    kind: Kind,
    reason: &str,
    details: impl Iterator<Item = (&'a str, &'a Value)>,
    invocation: Option<InvocationId>,
) -> A2aError {
    let mut metadata: Map<String, Value> = details.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    let is_push = metadata
        .get("path")
        .and_then(Value::as_str)
        .is_some_and(|path| member::plain(path).contains("pushnotification"));
    let error = match (code, kind) {
        (Code::PeerTaskNotFound, _) => {
            // One answer for tasks that do not exist and those of others, without a trace of which it was.
            return A2aError::new(ErrorKind::TaskNotFound, "Task not found", Map::new());
        }
        (Code::PeerResponseInvalid, _) => ErrorKind::InvalidAgentResponse,
        (Code::ParametersInvalid, _) if is_push => ErrorKind::PushNotificationNotSupported,
        (Code::BodyTooLarge | Code::MalformedJson, _) => ErrorKind::InvalidRequest,
        (Code::UnsupportedMediaType, _) => ErrorKind::ContentTypeNotSupported,
        (_, Kind::Invalid) => ErrorKind::InvalidParams,
        (_, Kind::BadGateway | Kind::Internal | Kind::Unavailable) => match code {
            // A guardian that could not decide denies.
            Code::GuardianFailed | Code::GuardianTimedOut => ErrorKind::Denied,
            _ => ErrorKind::Internal,
        },
        (_, Kind::NotFound) => ErrorKind::TaskNotFound,
        (_, Kind::Conflict | Kind::Forbidden | Kind::Gone | Kind::TooMany | Kind::Unauthenticated) => ErrorKind::Denied,
    };
    metadata.insert("code".to_owned(), json!(code.as_str()));
    metadata.extend(invocation.map(|id| ("invocation_id".to_owned(), json!(id))));
    A2aError::new(error, reason, metadata)
}
