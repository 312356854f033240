//! One event of a timeline on one line.

use serde_json::json;
use toolgate_model::event::{ApprovalDecided, EventPayload, StoredEvent, ToolDenied, ToolInvoked};
use toolgate_model::guard::{Dialect, HookDecision};

use crate::output::{clean, plain};

/// The width of the column of event names.
const NAME_WIDTH: usize = 20;
/// How many characters of a hash are shown.
const HASH_LENGTH: usize = 12;

/// The name of the event, and its main attributes.
pub(super) fn described(event: &StoredEvent) -> String {
    let payload = &event.event.payload;
    let words = match payload {
        EventPayload::AgentToolCalled(called) => {
            vec![called.transport.as_str().to_owned(), format!("arguments {}", hash(&called.args_hash))]
        }
        EventPayload::ToolForbidden(forbidden) => vec![forbidden.status.as_str().to_owned()],
        EventPayload::HookDecided(decision) => decided(decision),
        EventPayload::ToolInvoked(invoked) => invocation(invoked),
        EventPayload::ToolDenied(denied) => refusal(denied),
        EventPayload::ApprovalRequested(requested) => vec![
            requested.approval_id.to_string(),
            format!("asked by {}", plain(&json!(requested.asked_by))),
            format!("needs {}", requested.approvers_needed),
            format!("until {}", requested.expires_at),
        ],
        EventPayload::StandingApprovalUsed(used) => {
            vec![used.standing_approval_id.to_string(), format!("used {} times", used.used)]
        }
        other => match other.approval_decided() {
            Some(decided) => decision_of(decided),
            None => vec![plain(event.data())],
        },
    };
    let name = match payload {
        // The hook is more specific than the name of the event.
        EventPayload::HookDecided(decision) => decision.hook.as_str(),
        other => other.name(),
    };
    columns(&clean(name), &words)
}

/// A name, and attributes in the next column.
pub(super) fn columns(name: &str, words: &[String]) -> String {
    format!("{name:<NAME_WIDTH$}  {}", words.join(", ")).trim_end().to_owned()
}

fn decided(decision: &HookDecision) -> Vec<String> {
    let before = hash(&decision.hash_before);
    let content = match &decision.hash_after {
        Some(after) => format!("content changed: {before} -> {}", hash(after)),
        None => format!("content {before}"),
    };
    let mut words = vec![decision.effective.as_str().to_uppercase()];
    words.extend(decision.tool.as_deref().filter(|_| decision.invocation.is_none()).map(clean));
    words.extend((decision.dialect != Dialect::Native).then(|| format!("dialect {}", decision.dialect.as_str())));
    words.extend(decision.policy_version.map(|version| format!("policy version {version}")));
    words.push(content);
    words.extend(decision.approval.map(|approval| approval.to_string()));
    words
}

fn invocation(invoked: &ToolInvoked) -> Vec<String> {
    let mut words = vec![invoked.status.as_str().to_owned()];
    words.extend(invoked.error_code.as_deref().map(clean));
    words.extend(invoked.http_status.map(|status| format!("http {status}")));
    words.extend(invoked.duration_ms.map(|duration| format!("{duration} ms")));
    words.extend(invoked.reported.then(|| "reported by the caller".to_owned()));
    words
}

fn refusal(denied: &ToolDenied) -> Vec<String> {
    vec![format!("at {}", clean(&denied.stage)), clean(&denied.error_code), clean(&denied.reason)]
}

fn decision_of(decided: &ApprovalDecided) -> Vec<String> {
    let mut words = vec![decided.approval_id.to_string()];
    words.extend(decided.principal.as_ref().map(|principal| format!("by {principal}")));
    words.extend(decided.channel.map(|channel| format!("via {}", channel.as_str())));
    words.extend(decided.standing_approval_id.map(|id| format!("now covered by {id}")));
    words.extend(decided.reason.as_deref().map(clean));
    words
}

fn hash(hash: &str) -> String {
    clean(&hash.chars().take(HASH_LENGTH).collect::<String>())
}
