//! Calls as API Activity. Attributes are selected by name, so that neither parameters nor results are exported.

use serde_json::{Map, Value, json};
use toolgate_model::credential::ServiceName;
use toolgate_model::event::{Event, EventPayload, SessionOutcome, ToolDenied, ToolInvoked};
use toolgate_model::hook::{ReturnStatus, ToolReturned};
use toolgate_model::invocation::InvocationStatus;

use super::class::{Activity, Class, Outcome, Severity};
use super::{Mapped, object, present, value};

/// `None` if the event is not about a call.
pub fn map(event: &Event) -> Option<Mapped> {
    let returned = event.returned();
    let (activity, ended, operation) = match &event.payload {
        EventPayload::AgentToolCalled(called) => ("Call", Ended::pending(), called.tool_name.to_string()),
        EventPayload::ToolForbidden(forbidden) => {
            ("Load", Ended::refused(Some(forbidden.status.as_str())), forbidden.tool_name.clone())
        }
        EventPayload::CallDetached(detached) => ("Accept", Ended::pending(), detached.tool.clone()),
        EventPayload::AuthorizationDecided(decided) => {
            ("Authorize", Ended::refused(Some(&decided.reason)), decided.action.to_string())
        }
        EventPayload::ToolDenialsCounted(_) => ("Deny Many", Ended::refused(None), "unknown".to_owned()),
        EventPayload::ToolDenied(denied) => {
            ("Deny", Ended::of_denied(denied), returned.as_deref()?.tool_name.to_string())
        }
        EventPayload::ToolInvoked(invoked) => {
            ("Return", Ended::of_invoked(invoked), returned.as_deref()?.tool_name.to_string())
        }
        EventPayload::ToolSessionClosed(closed) => {
            ("Close Session", Ended::of_session(closed.outcome), closed.tool_id.clone())
        }
        EventPayload::ToolSessionOpened(opened) => ("Open Session", Ended::success(), opened.tool_id.clone()),
        _ => return None,
    };
    let mut attributes = object([
        ("api", api(&event.payload, &operation)),
        // Required by the class; the log does not contain the address of callers.
        ("src_endpoint", json!({"name": "unknown", "type": "Unknown", "type_id": 0})),
    ]);
    attributes.extend(present([
        ("status_code", value(&ended.code)),
        ("status_detail", value(&ended.detail)),
        ("duration", value(duration(&event.payload, returned.as_deref()))),
    ]));
    match &event.payload {
        EventPayload::AuthorizationDecided(decided) => {
            attributes.insert("resources".to_owned(), json!([{"name": decided.resource}]));
        }
        EventPayload::ToolDenialsCounted(denials) => {
            attributes.insert("count".to_owned(), json!(denials.count));
        }
        _ => {}
    }
    Some(Mapped {
        class: Class::ApiActivity,
        activity: Activity::other(activity),
        outcome: ended.outcome,
        severity: ended.severity,
        attributes,
        unmapped: unmapped(&event.payload),
    })
}

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

    fn failure(code: Option<String>, detail: Option<String>) -> Self {
        Self { outcome: Outcome::Failure, severity: Severity::Low, code, detail }
    }

    fn refused(code: Option<&str>) -> Self {
        Self { severity: Severity::Medium, ..Self::failure(code.map(str::to_owned), None) }
    }

    fn of_denied(denied: &ToolDenied) -> Self {
        let code = Some(denied.error_code.clone());
        match &denied.returned {
            Some(returned) => Self { code, ..Self::of_returned(returned) },
            None => Self::refused(code.as_deref()),
        }
    }

    fn of_invoked(invoked: &ToolInvoked) -> Self {
        let code = invoked.error_code.clone();
        match (invoked.status, &invoked.returned) {
            // An interrupted call may have been executed.
            (InvocationStatus::Unknown, _) => Self { severity: Severity::Low, code, ..Self::pending() },
            (_, Some(returned)) => {
                let ended = Self::of_returned(returned);
                Self { code: code.or(ended.code), ..ended }
            }
            (InvocationStatus::Success, None) => Self::success(),
            (_, None) => Self::failure(code, None),
        }
    }

    fn of_returned(returned: &ToolReturned) -> Self {
        match (returned.status, &returned.error) {
            (ReturnStatus::Ok, _) => Self::success(),
            (ReturnStatus::Forbidden, _) => Self::refused(Some(returned.status.as_str())),
            (ReturnStatus::Error | ReturnStatus::RateLimited, Some(error)) => {
                Self::failure(Some(error.code.clone()), Some(error.message.clone()))
            }
            (ReturnStatus::Error | ReturnStatus::RateLimited, None) => {
                Self::failure(Some(returned.status.as_str().to_owned()), None)
            }
        }
    }

    fn of_session(outcome: SessionOutcome) -> Self {
        match outcome {
            SessionOutcome::Completed => Self::success(),
            SessionOutcome::Failed => Self::failure(Some("failed".to_owned()), None),
        }
    }
}

fn api(payload: &EventPayload, operation: &str) -> Value {
    let mut api = object([("operation", json!(operation))]);
    // Not derived from the operation: names of services may contain dots.
    if let Some(service) = service(payload) {
        api.insert("service".to_owned(), json!({"name": service}));
    }
    let session = || match payload {
        EventPayload::ToolSessionClosed(closed) => Some(closed.session_id.to_string()),
        EventPayload::ToolSessionOpened(opened) => Some(opened.session_id.to_string()),
        _ => None,
    };
    if let Some(call) = payload.call().or_else(session) {
        api.insert("request".to_owned(), json!({"uid": call}));
    }
    if let EventPayload::ToolInvoked(invoked) = payload
        && let Some(status) = invoked.http_status
    {
        api.insert("response".to_owned(), json!({"code": status}));
    }
    Value::Object(api)
}

fn service(payload: &EventPayload) -> Option<&ServiceName> {
    match payload {
        EventPayload::ToolDenied(denied) => denied.service.as_ref(),
        EventPayload::ToolInvoked(invoked) => invoked.service.as_ref(),
        _ => None,
    }
}

/// The duration of the call, or else of the tool.
fn duration(payload: &EventPayload, returned: Option<&ToolReturned>) -> Option<u64> {
    let whole = match payload {
        EventPayload::ToolInvoked(invoked) => invoked.duration_ms,
        _ => None,
    };
    whole.or_else(|| returned.and_then(|returned| returned.duration_ms))
}

fn unmapped(payload: &EventPayload) -> Map<String, Value> {
    match payload {
        EventPayload::AgentToolCalled(called) => {
            present([("argsHash", value(&called.args_hash)), ("transport", value(called.transport))])
        }
        EventPayload::CallDetached(detached) => present([("argsHash", value(&detached.arguments_hash))]),
        EventPayload::ToolDenialsCounted(denials) => present([
            ("codes", value(&denials.codes)),
            ("first_at", value(denials.first_at)),
            ("last_at", value(denials.last_at)),
        ]),
        EventPayload::ToolDenied(denied) => present([
            ("argsHash", value(&denied.arguments_hash)),
            ("grant_id", value(denied.grant_id)),
            ("stage", value(&denied.stage)),
        ]),
        EventPayload::ToolInvoked(invoked) => present([
            ("argsHash", value(&invoked.arguments_hash)),
            ("cost", value(invoked.cost)),
            ("grant_id", value(invoked.grant_id)),
            ("reported", value(invoked.reported.then_some(true))),
            ("request_fingerprint", value(&invoked.request_fingerprint)),
        ]),
        EventPayload::ToolSessionClosed(closed) => present([("sessionId", value(closed.session_id))]),
        EventPayload::ToolSessionOpened(opened) => present([("sessionId", value(opened.session_id))]),
        _ => Map::new(),
    }
}
