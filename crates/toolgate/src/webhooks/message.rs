//! What the webhook is told of an event: what happened to which approval, of which tool, for which agent. Never the
//! arguments, and nothing that could be derived from them unless the operator wants the description.

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_gate::ports::approver::RiskLevel;
use toolgate_model::approval::Approval;
use toolgate_model::time::Timestamp;

/// How long after it happened something is still told.
const MESSAGE_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// How long after the end of an approval it is still told that somebody was asked.
const REQUEST_LIFETIME: Duration = Duration::from_secs(3600);

/// What is told of an event besides what identifies the approval. The digest is not: whoever can guess the arguments
/// could try them on it.
const DATA: [&str; 13] = [
    "approval_id",
    "approvers_needed",
    "asked_by",
    "category",
    "channel",
    "decision",
    "expires_at",
    "invocation_id",
    "principal",
    "quorumProgress",
    "standing_approval_id",
    "status",
    "tool",
];
/// What is told besides where the operator wants the description: words of people and of callers.
const DESCRIBING_DATA: [&str; 2] = ["reason", "session"];

/// How much of a call is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Details {
    /// The tool and the agent.
    None,
    /// What the call does, in a line, too.
    Description,
}

/// One message.
pub(super) struct Message {
    /// The id of the event, by which whoever gets it twice knows it.
    pub(super) id: String,
    /// Where to answer.
    pub(super) link: Option<String>,
    sequence: u64,
    kind: String,
    time: Timestamp,
    data: Value,
    approval: Approval,
    risk: RiskLevel,
    details: Details,
}

impl Message {
    /// From an event and the approval that it is about, as it is now; `None` where that is no event of the log.
    pub(super) fn new(
        sequence: u64,
        event: &Value,
        approval: Approval,
        risk: RiskLevel,
        details: Details,
    ) -> Option<Self> {
        let text = |name: &str| event.get(name).and_then(Value::as_str);
        Some(Self {
            id: text("id")?.to_owned(),
            link: None,
            sequence,
            kind: text("type")?.to_owned(),
            time: Timestamp::parse(text("timestamp")?).ok()?,
            data: shown_data(event.get("data")?.as_object()?, details),
            approval,
            risk,
            details,
        })
    }

    /// Whether it asks somebody.
    pub(super) fn asks(&self) -> bool {
        self.kind == "approval.requested"
    }

    /// The approval that it is about.
    pub(super) fn approval(&self) -> &Approval {
        &self.approval
    }

    /// Why it is not worth delivering any more.
    pub(super) fn is_too_old(&self, now: Timestamp) -> Option<&'static str> {
        // Whether it was answered or not, it has ended by then.
        let end = self.approval.resolved_at.unwrap_or(self.approval.expires_at);
        if self.asks() && end.plus(REQUEST_LIFETIME) <= now {
            Some("the approval has ended long ago")
        } else if self.time.plus(MESSAGE_LIFETIME) <= now {
            Some("it happened more than a day ago")
        } else {
            None
        }
    }

    /// As it is sent.
    pub(super) fn body(&self) -> String {
        let mut body = json!({
            "type": self.kind,
            "timestamp": self.time,
            "sequence": self.sequence,
            "tenant_id": self.approval.tenant,
            "data": self.data,
            "approval": self.shown_approval(),
        });
        if let (Some(link), Value::Object(members)) = (&self.link, &mut body) {
            members.insert("link".to_owned(), json!(link));
        }
        body.to_string()
    }

    fn shown_approval(&self) -> Value {
        let approval = &self.approval;
        let mut shown = json!({
            "id": approval.id,
            "status": approval.status,
            "tool": approval.tool,
            "agent_id": approval.agent,
            "category": approval.category,
            "risk": self.risk,
            "approvers": {"needed": approval.rule.approvers, "given": approval.given()},
            "created_at": approval.created_at,
            "expires_at": approval.expires_at,
            "resolved_at": approval.resolved_at,
        });
        if let (Details::Description, Value::Object(members)) = (self.details, &mut shown) {
            members.insert("description".to_owned(), json!(approval.description));
        }
        shown
    }
}

fn shown_data(data: &Map<String, Value>, details: Details) -> Value {
    let is_shown = |name: &str| match details {
        Details::None => DATA.contains(&name),
        Details::Description => DATA.contains(&name) || DESCRIBING_DATA.contains(&name),
    };
    let shown = data.iter().filter(|(name, _)| is_shown(name));
    Value::Object(shown.map(|(name, value)| (name.clone(), value.clone())).collect())
}

#[cfg(test)]
mod tests;
