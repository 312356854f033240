//! Reads the response of a guardian. Anything that is not clearly one of the three decisions is a failure with its own
//! class, so that it never counts as an allow.

use serde_json::{Map, Value};
use toolgate_model::guard::{FailureClass, HookEvent, PolicyRef};
use toolgate_model::strict_json;

use super::change;
use crate::{GuardianDecision, GuardianResponse, jsonrpc};

/// The maximum length of a reason, in characters.
const REASON_CHARACTERS: usize = 2000;

/// The maximum length of a code or of a policy name, in characters.
const NAME_CHARACTERS: usize = 200;

/// The maximum number of codes.
const CODES: usize = 32;

/// The error codes for refused communication: authentication, replay, negotiation.
const REFUSALS: std::ops::RangeInclusive<i64> = -32007..=-32001;

/// Reads the response to the question `id` about `event`.
pub fn read_response(bytes: &[u8], id: &str, event: &HookEvent<'_>) -> Result<GuardianResponse, FailureClass> {
    let response = strict_json::parse(bytes).map_err(|_| FailureClass::Malformed)?;
    let Value::Object(response) = response else { return Err(FailureClass::Malformed) };
    let result = result_of(&response, id)?;
    let decision = match result.get("decision").and_then(Value::as_str) {
        Some("allow") => GuardianDecision::Allow,
        Some("deny") => GuardianDecision::Deny,
        Some("modify") => {
            let change = given(result, "modifiedRequest").ok_or(FailureClass::IncompleteDecision)?;
            GuardianDecision::Modify(change::apply(change, id, event)?)
        }
        _ => return Err(FailureClass::UnknownDecision),
    };
    let reason = ["reason", "message", "reasoning"].into_iter().find_map(|name| line(result, name, REASON_CHARACTERS));
    let policy = line(result, "policyId", NAME_CHARACTERS).map(|id| {
        let version = match given(result, "policyVersion") {
            Some(Value::Number(number)) => number.to_string(),
            _ => line(result, "policyVersion", NAME_CHARACTERS).unwrap_or_default(),
        };
        PolicyRef { id, version }
    });
    Ok(GuardianResponse { decision, reason, codes: codes(result), policy })
}

/// The result in a valid envelope.
fn result_of<'v>(response: &'v Map<String, Value>, id: &str) -> Result<&'v Map<String, Value>, FailureClass> {
    if response.get("jsonrpc").and_then(Value::as_str) != Some(jsonrpc::VERSION) {
        return Err(FailureClass::Malformed);
    }
    let error = given(response, "error");
    match response.get("id") {
        None => return Err(FailureClass::Malformed),
        Some(Value::String(echoed)) if echoed == id => {}
        // A guardian that could not read the id responds with null.
        Some(Value::Null) if error.is_some() => {}
        Some(_) => return Err(FailureClass::IdMismatch),
    }
    match (given(response, "result"), error) {
        (Some(Value::Object(result)), None) => Ok(result),
        // A response without a decision is not an allow.
        (Some(_), None) => Err(FailureClass::UnknownDecision),
        (None, Some(Value::Object(error))) => match error.get("code").and_then(Value::as_i64) {
            Some(code) if REFUSALS.contains(&code) => Err(FailureClass::Refused),
            _ => Err(FailureClass::GuardianError),
        },
        _ => Err(FailureClass::Malformed),
    }
}

fn codes(result: &Map<String, Value>) -> Vec<String> {
    let codes = match given(result, "reasonCode") {
        Some(Value::Array(codes)) => codes.as_slice(),
        Some(code) => std::slice::from_ref(code),
        None => &[],
    };
    codes.iter().filter_map(Value::as_str).filter_map(|code| clean(code, NAME_CHARACTERS)).take(CODES).collect()
}

fn given<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|value| !value.is_null())
}

fn line(object: &Map<String, Value>, name: &str, characters: usize) -> Option<String> {
    clean(object.get(name)?.as_str()?, characters)
}

/// Reduces a text to one line without control characters; `None` if nothing is left.
fn clean(text: &str, characters: usize) -> Option<String> {
    let spaced = text.chars().map(|letter| if matches!(letter, '\n' | '\r' | '\t') { ' ' } else { letter });
    let text: String = spaced.filter(|letter| !letter.is_control()).take(characters).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
