//! The approvals of an execution: when each was requested, and when it ended.

use serde_json::Value;
use toolgate_model::event::{EventPayload, StoredEvent};
use toolgate_model::time::Timestamp;

use super::line;
use super::timeline::seconds;
use crate::output::{at, clean, plain};

#[derive(Debug, Default)]
pub(super) struct Approvals {
    pub(super) shown: Vec<Value>,
    /// Those that the caller may not see.
    pub(super) hidden: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Moment {
    pub(super) time: Timestamp,
    pub(super) line: String,
}

impl Approvals {
    /// Whether its moments already contain this event.
    pub(super) fn covers(&self, event: &StoredEvent) -> bool {
        let payload = &event.event.payload;
        let is_moment = match payload {
            EventPayload::ApprovalRequested(_) => true,
            EventPayload::ApprovalCounted(_) => false,
            other => other.approval_decided().is_some(),
        };
        is_moment
            && self.shown.iter().any(|approval| is_named_by(approval, event) && time(approval, "created_at").is_some())
    }

    /// A note about approvals that are not visible.
    pub(super) fn notice(&self) -> Option<String> {
        let hidden = clean(&self.hidden.join(", "));
        let sentence = "these approvals require `approvals.decide`, or are visible to their caller";
        (!self.hidden.is_empty()).then(|| format!("Not shown: {hidden}; {sentence}\n"))
    }
}

/// The ids of approvals that events name, without duplicates.
pub(super) fn named(events: &[StoredEvent]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for id in events.iter().filter_map(|event| event.event.payload.approval_id()) {
        let id = id.to_string();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// Whether an event is about this approval.
pub(super) fn is_named_by(approval: &Value, event: &StoredEvent) -> bool {
    event.event.payload.approval_id().is_some_and(|id| *at(approval, "id") == id.to_string())
}

/// In order; empty if the gate returned no times.
pub(super) fn moments(approval: &Value) -> Vec<Moment> {
    let Some(created) = time(approval, "created_at") else { return Vec::new() };
    let mut moments = vec![Moment { time: created, line: asked(approval) }];
    moments.extend(time(approval, "resolved_at").map(|time| Moment { time, line: ended(approval, created, time) }));
    moments
}

fn asked(approval: &Value) -> String {
    let mut words = vec![plain(at(approval, "id")), who(approval)];
    words.extend(text(approval, "expires_at").map(|until| format!("until {until}")));
    words.extend(list(approval, "reasons").iter().filter_map(|reason| text(reason, "text")).map(quoted));
    line::columns("asked", &words)
}

fn ended(approval: &Value, created: Timestamp, resolved: Timestamp) -> String {
    let status = plain(at(approval, "status"));
    let decision = match status.as_str() {
        "approved" => Some("approve"),
        "denied" => Some("deny"),
        _ => None,
    };
    let counts = |vote: &&Value| decision.is_some_and(|decision| at(vote, "decision") == decision);
    let voters: Vec<String> = list(approval, "votes").iter().filter(counts).map(voter).collect();
    let mut words = vec![plain(at(approval, "id"))];
    if !voters.is_empty() {
        words.push(format!("by {}", voters.join(" and ")));
    }
    words.push(format!("after {}", seconds(created, resolved)));
    words.extend(text(approval, "standing_approval_id").map(|id| format!("now covered by {id}")));
    words.extend(text(approval, "reason").map(quoted));
    line::columns(&status.replace('_', " "), &words)
}

/// The required number of approvers, and who qualifies.
fn who(approval: &Value) -> String {
    let needed = at(approval, "approvers.needed").as_u64().unwrap_or(1);
    let mut who = format!("needs {needed} {}", if needed == 1 { "approver" } else { "approvers" });
    let groups: Vec<String> = list(approval, "groups").iter().map(plain).collect();
    if !groups.is_empty() {
        who.push_str(&format!(" of {}", groups.join(" or ")));
    }
    if at(approval, "separation_of_duties") == true {
        who.push_str(&format!(" other than {}", plain(at(approval, "actor_id"))));
    }
    who
}

fn voter(vote: &Value) -> String {
    format!("{} via {}", plain(at(vote, "by")), plain(at(vote, "channel")))
}

fn quoted(words: String) -> String {
    format!("\"{words}\"")
}

fn text(value: &Value, name: &str) -> Option<String> {
    at(value, name).as_str().map(clean)
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    at(value, name).as_array().map(Vec::as_slice).unwrap_or_default()
}

fn time(approval: &Value, name: &str) -> Option<Timestamp> {
    Timestamp::parse(at(approval, name).as_str()?).ok()
}
