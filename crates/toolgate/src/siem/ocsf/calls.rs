//! Calls of tools as API Activity. What is told about a call is picked by name, so that nothing that it was given or that
//! came back can slip through.

use serde_json::{Map, Value, json};

use super::class::{Activity, Class, Outcome, Severity};
use super::{Mapped, StoredEvent, object, picked};

/// The line of an event about a call; `None` for any other event.
pub fn map(event: &StoredEvent) -> Option<Mapped> {
    let (activity, ended) = match event.kind.as_str() {
        "agent.toolCalled" => ("Call", Ended::pending()),
        "agent.toolReturned" => ("Load", Ended::of_returned(&event.data)),
        "call.detached" => ("Accept", Ended::pending()),
        "authorization.decided" => ("Authorize", Ended::refused(event.text("reason"))),
        "tool.denials.counted" => ("Deny Many", Ended::refused(None)),
        "tool.denied" => ("Deny", Ended::of(event)),
        "tool.invoked" => ("Return", Ended::of(event)),
        "tool.session.closed" => ("Close Session", Ended::of_session(event)),
        "tool.session.opened" => ("Open Session", Ended::success()),
        _ => return None,
    };
    let mut attributes = object([
        ("api", api(event)),
        // The class demands it, and the log does not keep where a caller was.
        ("src_endpoint", json!({"name": "unknown", "type": "Unknown", "type_id": 0})),
    ]);
    if let Some(code) = ended.code {
        attributes.insert("status_code".to_owned(), json!(code));
    }
    if let Some(detail) = ended.detail {
        attributes.insert("status_detail".to_owned(), json!(detail));
    }
    if let Some(resource) = event.text("resource") {
        attributes.insert("resources".to_owned(), json!([{"name": resource}]));
    }
    attributes.extend(picked(event.returned().unwrap_or(&event.data), &[("durationMs", "duration")]));
    attributes.extend(picked(&event.data, &[("duration_ms", "duration"), ("count", "count")]));
    Some(Mapped {
        class: Class::ApiActivity,
        activity: Activity::other(activity),
        outcome: ended.outcome,
        severity: ended.severity,
        attributes,
        unmapped: unmapped(&event.data),
    })
}

/// How a call ended, as far as the event says so.
struct Ended {
    outcome: Outcome,
    severity: Severity,
    code: Option<String>,
    detail: Option<String>,
}

impl Ended {
    fn pending() -> Self {
        Self { outcome: Outcome::Unknown, severity: Severity::Informational, code: None, detail: None }
    }

    fn success() -> Self {
        Self { outcome: Outcome::Success, ..Self::pending() }
    }

    fn refused(code: Option<&str>) -> Self {
        let code = code.map(str::to_owned);
        Self { outcome: Outcome::Failure, severity: Severity::Medium, code, detail: None }
    }

    fn of(event: &StoredEvent) -> Self {
        let code = event.text("error_code").map(str::to_owned);
        // A call that was cut off may have done what it was to do.
        if event.text("status") == Some("unknown") {
            return Self { severity: Severity::Low, code, ..Self::pending() };
        }
        if let Some(returned) = event.returned() {
            let ended = Self::of_returned(returned);
            return Self { code: code.or(ended.code), ..ended };
        }
        match event.text("status") {
            Some("success") => Self::success(),
            Some(_) => Self { outcome: Outcome::Failure, severity: Severity::Low, code, detail: None },
            None => Self::refused(code.as_deref()),
        }
    }

    fn of_returned(returned: &Map<String, Value>) -> Self {
        let text = |path: &Value| path.as_str().map(str::to_owned);
        let status = returned.get("status").and_then(Value::as_str).unwrap_or_default();
        let error = |name: &str| returned.get("error").and_then(|error| error.get(name)).and_then(text);
        match status {
            "ok" => Self::success(),
            "forbidden" => Self::refused(Some(status)),
            // What is neither is a failure: `error`, `rate_limited`, and whatever comes later.
            _ => Self {
                outcome: Outcome::Failure,
                severity: Severity::Low,
                code: error("code").or_else(|| Some(status.to_owned())),
                detail: error("message"),
            },
        }
    }

    fn of_session(event: &StoredEvent) -> Self {
        match event.text("outcome") {
            Some("completed") => Self::success(),
            outcome => {
                let code = outcome.map(str::to_owned);
                Self { outcome: Outcome::Failure, severity: Severity::Low, code, detail: None }
            }
        }
    }
}

fn api(event: &StoredEvent) -> Value {
    let called = event.returned().unwrap_or(&event.data);
    let named = ["toolName", "toolId", "action"].into_iter().find_map(|name| called.get(name)?.as_str());
    let service = event.text("service");
    let operation = match (named, service, event.text("tool")) {
        (Some(name), _, _) => name.to_owned(),
        (None, Some(service), Some(tool)) => format!("{service}.{tool}"),
        (None, _, tool) => tool.unwrap_or("unknown").to_owned(),
    };
    let mut api = object([("operation", json!(operation))]);
    // Not guessed from the operation: the names of services may have dots too.
    if let Some(service) = service {
        api.insert("service".to_owned(), json!({"name": service}));
    }
    let call = called.get("callId").or_else(|| event.data.get("invocation_id")).or_else(|| event.data.get("sessionId"));
    if let Some(call) = call {
        api.insert("request".to_owned(), json!({"uid": call}));
    }
    if let Some(status) = event.data.get("http_status") {
        api.insert("response".to_owned(), json!({"code": status}));
    }
    Value::Object(api)
}

fn unmapped(data: &Map<String, Value>) -> Map<String, Value> {
    let names = [
        ("arguments_hash", "argsHash"),
        ("argsHash", "argsHash"),
        ("codes", "codes"),
        ("cost", "cost"),
        ("first_at", "first_at"),
        ("grant_id", "grant_id"),
        ("last_at", "last_at"),
        ("reported", "reported"),
        ("request_fingerprint", "request_fingerprint"),
        ("sessionId", "sessionId"),
        ("stage", "stage"),
        ("transport", "transport"),
    ];
    picked(data, &names)
}
