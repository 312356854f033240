//! Converts the gate's decision into the response for the runtime. Many runtimes continue after an error, so what could
//! not be decided is reported as a denial.

use serde_json::{Map, Value, json};
use toolgate_dialect::aos::{self, ModifiedForm};
use toolgate_gate::call::HookResponse;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::guard::VerdictKind;

/// The response to a hook request.
pub(super) fn hook_response(
    asked: &aos::HookQuestion,
    outcome: Result<HookResponse, Refusal>,
    form: ModifiedForm,
) -> Value {
    let response = outcome.unwrap_or_else(|refusal| undecided(&refusal));
    let code = response.code.as_deref();
    let mut written = aos::write(
        asked,
        &aos::Response {
            kind: response.kind,
            reason: &response.reason,
            codes: code.as_slice(),
            policy: response.policy.as_ref(),
            data: Some(Value::Object(data(&response))),
            content: response.content.as_ref(),
            form,
        },
    );
    // A modification that cannot be expressed is recorded as a denial; this matches the record.
    let waits = code.is_some_and(|code| code.eq_ignore_ascii_case(Code::ApprovalRequired.as_str()));
    let effective = if waits { VerdictKind::Ask.as_str() } else { decision(&written) };
    if let Some(data) = written.pointer_mut("/result/data").and_then(Value::as_object_mut) {
        data.insert("effective".to_owned(), json!(effective));
    }
    written
}

/// The decision, as one word.
pub(super) fn decision(response: &Value) -> &'static str {
    let decision = response.pointer("/result/decision").and_then(Value::as_str).and_then(VerdictKind::parse);
    decision.unwrap_or(VerdictKind::Deny).as_str()
}

/// The ids that it belongs to.
fn data(response: &HookResponse) -> Map<String, Value> {
    let approval = response.approval.map(|id| ("approvalId".to_owned(), json!(id)));
    let invocation = response.invocation.map(|id| ("invocationId".to_owned(), json!(id)));
    approval.into_iter().chain(invocation).collect()
}

fn undecided(refusal: &Refusal) -> HookResponse {
    HookResponse {
        kind: VerdictKind::Deny,
        reason: refusal.reason().to_owned(),
        code: Some(refusal.code().as_str().to_ascii_lowercase()),
        policy: None,
        content: None,
        approval: None,
        invocation: None,
    }
}

#[cfg(test)]
mod tests;
