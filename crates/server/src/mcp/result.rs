//! What came of a call, as a result of `tools/call`. A refusal is a result too: the model reads why, and can correct itself.

use serde_json::{Map, Value, json};
use toolgate_gate::call::{CallResult, Denial};
use toolgate_gate::refusal::{Code, Kind, Refusal, Stage};
use toolgate_model::descriptor::SourceKind;
use toolgate_model::id::InvocationId;

use super::reply::RpcError;

/// Names the record of a call in the `_meta` of its result.
pub(super) const INVOCATION: &str = "toolgate/invocation_id";
/// Names the code of a refusal or a failure there.
const CODE: &str = "toolgate/code";

/// The result of a call that has ended.
pub(super) fn of_outcome(outcome: Result<CallResult, Denial>) -> Result<Map<String, Value>, RpcError> {
    match outcome {
        Ok(result) => Ok(of_result(result)),
        Err(denial) if is_about_the_name(&denial.refusal) => Err(RpcError::unknown_tool()),
        Err(denial) => Ok(of_denial(&denial)),
    }
}

/// A tool that the caller may not know of is refused in the same words as one that is not there. What is refused before a
/// grant was found is about a tool that is not listed, but for a grant that is bound to another task.
fn is_about_the_name(refusal: &Refusal) -> bool {
    match refusal.stage() {
        Some(Stage::Resolve) => refusal.code() != Code::ToolAmbiguous && !is_outage(refusal.code()),
        Some(Stage::Authorize) => !matches!(refusal.code(), Code::GrantContextMismatch) && !is_outage(refusal.code()),
        _ => false,
    }
}

fn is_outage(code: Code) -> bool {
    matches!(code.kind(), Kind::Internal | Kind::Unavailable | Kind::TooMany)
}

fn of_result(result: CallResult) -> Map<String, Value> {
    let outcome = result.outcome;
    let mut members = match (result.source, outcome.result) {
        // The result of a mounted server is the client's as it is.
        (SourceKind::Mcp, Some(Value::Object(members))) if members.get("content").is_some_and(Value::is_array) => {
            members
        }
        (_, found) => wrapped(found, outcome.error.as_ref().map(|error| error.message.as_str())),
    };
    if outcome.error.is_some() {
        members.insert("isError".to_owned(), json!(true));
    }
    let code = outcome.error.map(|error| error.code);
    note(&mut members, Some(result.invocation), code.as_deref());
    if outcome.truncated {
        set_meta(&mut members, "toolgate/truncated", json!(true));
    }
    members
}

/// A result of a tool that speaks another protocol: as text, and as it is where it is an object.
fn wrapped(result: Option<Value>, failure: Option<&str>) -> Map<String, Value> {
    let mut content: Vec<Value> = failure.map(text).into_iter().collect();
    let mut members = Map::new();
    match result {
        None | Some(Value::Null) if failure.is_some() => {}
        None | Some(Value::Null) => content.push(text("")),
        Some(Value::String(found)) => content.push(json!({"type": "text", "text": found})),
        Some(found) => {
            content.push(json!({"type": "text", "text": found.to_string()}));
            if found.is_object() && failure.is_none() {
                members.insert("structuredContent".to_owned(), found);
            }
        }
    }
    members.insert("content".to_owned(), Value::Array(content));
    members
}

/// A result that is not one of a tool, as text and as it is.
pub(super) fn structured(value: Value) -> Map<String, Value> {
    wrapped(Some(value), None)
}

/// What became of a call whose result would be the response itself.
pub(super) fn failure(outcome: Result<CallResult, Denial>) -> RpcError {
    let (message, code, invocation) = match outcome {
        Ok(result) => {
            let error = result.outcome.error;
            let (message, code) = error.map(|error| (error.message, error.code)).unwrap_or_default();
            (message, code, Some(result.invocation))
        }
        Err(denial) => {
            let refusal = denial.refusal;
            (refusal.reason().to_owned(), refusal.code().as_str().to_owned(), denial.invocation)
        }
    };
    RpcError { data: Some(json!({"code": code, "invocation_id": invocation})), ..RpcError::internal(message) }
}

fn of_denial(denial: &Denial) -> Map<String, Value> {
    let reason = denial.refusal.reason();
    // A model repeats the text to its user, who can find the record by it.
    let reason = denial.invocation.map_or_else(|| reason.to_owned(), |id| format!("{reason} ({id})"));
    let mut members = error_result(&reason);
    note(&mut members, denial.invocation, Some(denial.refusal.code().as_str()));
    let approval = denial.refusal.details().find(|(name, _)| *name == "approval_id");
    if let Some((_, approval)) = approval {
        set_meta(&mut members, "toolgate/approval_id", approval.clone());
    }
    members
}

/// A result that says why there is none.
pub(super) fn error_result(reason: &str) -> Map<String, Value> {
    Map::from_iter([("content".to_owned(), json!([text(reason)])), ("isError".to_owned(), json!(true))])
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn note(members: &mut Map<String, Value>, invocation: Option<InvocationId>, code: Option<&str>) {
    if let Some(invocation) = invocation {
        set_meta(members, INVOCATION, json!(invocation));
    }
    if let Some(code) = code {
        set_meta(members, CODE, json!(code));
    }
}

/// Adds to the `_meta` of a result.
pub(super) fn set_meta(members: &mut Map<String, Value>, name: &str, value: Value) {
    let mut meta = match members.remove("_meta") {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    meta.insert(name.to_owned(), value);
    members.insert("_meta".to_owned(), Value::Object(meta));
}
