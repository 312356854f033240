//! Parses the steps of a call.

use serde_json::{Map, Value, json};
use toolgate_model::approval::Category;

use super::engine::{Ended, Progress, Request};
use super::protocol::ResultStatus;

/// The members of an approval that are passed to the host.
const DETAILS: [&str; 8] = ["id", "expires_at", "reasons", "risk", "parts", "offers", "question", "approvers"];

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Progress(Progress),
    /// Not reported to the host.
    Quiet,
    Ended(Ended),
}

/// `None` if the line is invalid.
pub(super) fn step(mut line: Value) -> Option<Step> {
    let event = line.get("event")?.as_str()?.to_owned();
    match event.as_str() {
        "asked" => {
            let approval = line.get_mut("approval")?.take();
            Some(Step::Progress(Progress::Asked(Box::new(request(approval)?))))
        }
        "covered" => {
            let ids = line.get("standing_approval_ids")?.as_array()?.iter();
            let ids = ids.map(|id| id.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()?;
            Some(Step::Progress(Progress::Covered(ids)))
        }
        // Approvers see the modified form; the protocol has no event for other steps.
        "modified" => Some(Step::Quiet),
        "admitted" => Some(Step::Progress(Progress::Admitted)),
        "answered" => Some(Step::Ended(ended(line.get_mut("body")?.take()))),
        _ => None,
    }
}

/// How a call ended.
pub(super) fn ended(mut body: Value) -> Ended {
    if body.get("status").and_then(Value::as_str) == Some("success") {
        let result = body.get_mut("result").map(Value::take).unwrap_or_default();
        return succeeded(result, metadata(&body, &["invocation_id", "duration_ms", "truncated"]));
    }
    let text = |path: &str| body.pointer(path).and_then(Value::as_str);
    let message =
        text("/error/message").or(text("/message")).unwrap_or("the gate refused the call without a reason").to_owned();
    let code = text("/error/code").unwrap_or_default();
    match code {
        "APPROVAL_DENIED" | "APPROVAL_CANCELLED" => Ended::Cancelled { reason: message, expired: false },
        "APPROVAL_TIMED_OUT" => Ended::Cancelled { reason: message, expired: true },
        code => {
            let mut metadata = metadata(&body, &["invocation_id", "duration_ms"]);
            metadata.insert("code".to_owned(), json!(code));
            Ended::Finished { status: ResultStatus::Error, output: message, metadata }
        }
    }
}

/// A call whose outcome is unknown because the connection failed.
pub(super) fn broken(message: String) -> Ended {
    Ended::Finished { status: ResultStatus::Error, output: message, metadata: Map::new() }
}

/// Workspace tools return text in `output` and metadata beside it; other tools return any JSON.
fn succeeded(result: Value, mut metadata: Map<String, Value>) -> Ended {
    let (output, status) = match result {
        Value::String(text) => (text, ResultStatus::Success),
        Value::Null => (String::new(), ResultStatus::Success),
        Value::Object(members) if is_of_the_workspace(&members) => {
            let mut text = String::new();
            let mut status = ResultStatus::Success;
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("output", Value::String(output)) => text = output,
                    ("is_error", Value::Bool(failed)) if failed => status = ResultStatus::Error,
                    ("is_error", _) => {}
                    (_, value) => drop(metadata.insert(name, value)),
                }
            }
            (text, status)
        }
        other => (other.to_string(), ResultStatus::Success),
    };
    Ended::Finished { status, output, metadata }
}

fn is_of_the_workspace(members: &Map<String, Value>) -> bool {
    members.get("output").is_some_and(Value::is_string) && members.get("is_error").is_some_and(Value::is_boolean)
}

fn metadata(body: &Value, names: &[&str]) -> Map<String, Value> {
    let present = names.iter().filter_map(|name| Some(((*name).to_owned(), body.get(*name)?.clone())));
    present.filter(|(_, value)| !value.is_null()).collect()
}

fn request(approval: Value) -> Option<Request> {
    let text = |name: &str| approval.get(name).and_then(Value::as_str);
    let reasons = approval.get("reasons").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let reasons: Vec<&str> = reasons.iter().filter_map(|reason| reason.get("text")?.as_str()).collect();
    Some(Request {
        approval: text("id")?.to_owned(),
        category: text("category").and_then(Category::parse),
        description: text("description").map(str::to_owned),
        arguments: approval.get("arguments").filter(|arguments| !arguments.is_null()).cloned(),
        reason: reasons.join("; "),
        details: metadata(&approval, &DETAILS),
    })
}

#[cfg(test)]
mod tests {
    use toolgate_model::approval::TIMED_OUT;

    use super::*;

    fn refused(code: &str, message: &str) -> Value {
        json!({"status": "denied", "message": message, "error": {"code": code, "message": message}})
    }

    #[test]
    fn a_call_goes_through_the_steps_that_the_gate_tells() {
        let approval = json!({
            "id": "appr_1", "category": "exec", "description": "Execute: ls", "arguments": {"command": "ls"},
            "reasons": [{"source": "mode", "text": "mode default asks"}, {"source": "tool", "text": "so does the tool"}],
            "risk": {"level": "low", "notes": []}, "expires_at": "soon", "question": null, "votes": [],
        });
        let Some(Step::Progress(Progress::Asked(request))) = step(json!({"event": "asked", "approval": approval}))
        else {
            panic!("not understood")
        };
        assert_eq!((request.approval.as_str(), request.category), ("appr_1", Some(Category::Exec)));
        assert_eq!(request.reason, "mode default asks; so does the tool");
        let shown: Vec<&str> = request.details.keys().map(String::as_str).collect();
        assert_eq!(shown, ["id", "expires_at", "reasons", "risk"]);
        let covered = step(json!({"event": "covered", "standing_approval_ids": ["standing_1"]}));
        assert_eq!(covered, Some(Step::Progress(Progress::Covered(vec!["standing_1".to_owned()]))));
        assert_eq!(step(json!({"event": "modified", "parameters": {}})), Some(Step::Quiet));
        let admitted = step(json!({"event": "admitted", "invocation_id": "inv_1", "tool": "a.b"}));
        assert_eq!(admitted, Some(Step::Progress(Progress::Admitted)));
        for strange in [json!({}), json!([]), json!({"event": "danced"}), json!({"event": "asked", "approval": {}})] {
            assert_eq!(step(strange.clone()), None, "{strange}");
        }
    }

    #[test]
    fn output_is_text_whatever_the_tool_gives() {
        for (result, output, status) in [
            (json!("plain"), "plain", ResultStatus::Success),
            (Value::Null, "", ResultStatus::Success),
            (json!({"a": [1]}), r#"{"a":[1]}"#, ResultStatus::Success),
            (json!({"output": "text"}), r#"{"output":"text"}"#, ResultStatus::Success),
            (json!({"output": "ok", "is_error": false, "details": {"exit_code": 0}}), "ok", ResultStatus::Success),
            (json!({"output": "no", "is_error": true, "details": {}}), "no", ResultStatus::Error),
        ] {
            let body = json!({"status": "success", "result": result, "invocation_id": "inv_1", "error": null});
            let Ended::Finished { status: found, output: text, metadata } = ended(body) else { panic!("{result}") };
            assert_eq!((text.as_str(), found), (output, status));
            assert_eq!(metadata["invocation_id"], "inv_1");
        }
    }

    #[test]
    fn a_no_cancels_and_every_other_refusal_is_a_bad_result() {
        let timed_out = ended(refused("APPROVAL_TIMED_OUT", TIMED_OUT));
        assert_eq!(timed_out, Ended::Cancelled { reason: TIMED_OUT.to_owned(), expired: true });
        let denied = ended(refused("APPROVAL_DENIED", "too dangerous"));
        assert_eq!(denied, Ended::Cancelled { reason: "too dangerous".to_owned(), expired: false });
        let Ended::Finished { status, output, metadata } = ended(refused("SCOPE_DENIED", "no scope")) else {
            panic!("cancelled")
        };
        assert_eq!(
            (status, output.as_str(), &metadata["code"]),
            (ResultStatus::Error, "no scope", &json!("SCOPE_DENIED"))
        );
        assert!(matches!(ended(json!({})), Ended::Finished { status: ResultStatus::Error, .. }));
    }
}
