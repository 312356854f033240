//! Reading what a guardian answered. Whatever is not plainly one of the three decisions is a failure with a class of
//! its own, so that no guess is ever taken for a yes.

use serde_json::{Map, Value};
use toolgate_model::guard::{FailureClass, HookEvent, PolicyRef};
use toolgate_model::strict_json;

use super::change;
use crate::{GuardianDecision, GuardianResponse, jsonrpc};

/// How much of a reason is kept, in characters.
const REASON_CHARACTERS: usize = 2000;

/// How much of a code or of a policy's name is kept, in characters.
const NAME_CHARACTERS: usize = 200;

/// How many codes are kept.
const CODES: usize = 32;

/// The codes of errors that refuse to speak: authentication, replay, negotiation.
const REFUSALS: std::ops::RangeInclusive<i64> = -32007..=-32001;

/// Reads the answer to the question `id` about `event`.
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

/// The result in an envelope that is in order.
fn result_of<'v>(response: &'v Map<String, Value>, id: &str) -> Result<&'v Map<String, Value>, FailureClass> {
    if response.get("jsonrpc").and_then(Value::as_str) != Some(jsonrpc::VERSION) {
        return Err(FailureClass::Malformed);
    }
    let error = given(response, "error");
    match response.get("id") {
        None => return Err(FailureClass::Malformed),
        Some(Value::String(answered)) if answered == id => {}
        // Whoever could not read the id of a question says so with null.
        Some(Value::Null) if error.is_some() => {}
        Some(_) => return Err(FailureClass::IdMismatch),
    }
    match (given(response, "result"), error) {
        (Some(Value::Object(result)), None) => Ok(result),
        // It did answer, and that was no yes.
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

/// A text on one line, without what could play tricks on a terminal; `None` where nothing is left.
fn clean(text: &str, characters: usize) -> Option<String> {
    let spaced = text.chars().map(|letter| if matches!(letter, '\n' | '\r' | '\t') { ' ' } else { letter });
    let text: String = spaced.filter(|letter| !letter.is_control()).take(characters).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
