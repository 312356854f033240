//! The message of an approval event: the event, the approval, the tool and the agent. Never the arguments, and nothing
//! that could be derived from them unless the operator wants the description.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_gate::ports::approver::RiskLevel;
use toolgate_model::approval::Approval;
use toolgate_model::event::{Event, EventPayload};
use toolgate_model::time::Timestamp;

/// How long after the event a message is still delivered.
const MESSAGE_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// How long after the end of an approval its request is still delivered.
const REQUEST_LIFETIME: Duration = Duration::from_secs(3600);

/// How much of a call is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Details {
    /// The tool and the agent.
    None,
    /// Also one line that describes the call.
    Description,
}

pub(super) struct Message {
    /// The link to decide.
    pub(super) link: Option<String>,
    sequence: u64,
    event: Event,
    approval: Approval,
    risk: RiskLevel,
    details: Details,
}

impl Message {
    /// From an event and the approval that it is about, as it is now.
    pub(super) fn new(sequence: u64, event: Event, approval: Approval, risk: RiskLevel, details: Details) -> Self {
        Self { link: None, sequence, event, approval, risk, details }
    }

    /// The id of the event, by which a receiver recognizes duplicates.
    pub(super) fn id(&self) -> String {
        self.event.id.to_string()
    }

    /// Whether it requests a decision.
    pub(super) fn asks(&self) -> bool {
        matches!(self.event.payload, EventPayload::ApprovalRequested(_))
    }

    /// The approval that it is about.
    pub(super) fn approval(&self) -> &Approval {
        &self.approval
    }

    /// Why it is no longer worth delivering.
    pub(super) fn is_too_old(&self, now: Timestamp) -> Option<&'static str> {
        // Decided or not, it has ended by then.
        let end = self.approval.resolved_at.unwrap_or(self.approval.expires_at);
        if self.asks() && end.plus(REQUEST_LIFETIME) <= now {
            Some("the approval ended long ago")
        } else if self.event.time.plus(MESSAGE_LIFETIME) <= now {
            Some("it happened more than a day ago")
        } else {
            None
        }
    }

    /// As it is sent.
    pub(super) fn body(&self) -> String {
        let mut body = json!({
            "type": self.event.payload.name(),
            "timestamp": self.event.time,
            "sequence": self.sequence,
            "tenant_id": self.approval.tenant,
            "data": shown_data(&self.event.payload, self.details),
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

/// The data of an event. It does not include the digest: arguments could be guessed and compared with it. Text of
/// people and callers is included only with the description.
fn shown_data(payload: &EventPayload, details: Details) -> Value {
    let described = details == Details::Description;
    let mut data = match payload {
        EventPayload::ApprovalRequested(requested) => json!({
            "approval_id": requested.approval_id,
            "approvers_needed": requested.approvers_needed,
            "asked_by": requested.asked_by,
            "category": requested.category,
            "expires_at": requested.expires_at,
            "invocation_id": requested.invocation_id,
            "session": requested.session.as_ref().filter(|_| described),
            "status": requested.status,
            "tool": requested.tool,
        }),
        other => match other.approval_decided() {
            Some(decided) => json!({
                "approval_id": decided.approval_id,
                "channel": decided.channel,
                "decision": decided.decision,
                "invocation_id": decided.invocation_id,
                "principal": decided.principal,
                "quorumProgress": decided.quorum_progress,
                "reason": decided.reason.as_ref().filter(|_| described),
                "standing_approval_id": decided.standing_approval_id,
                "status": decided.status,
                "tool": decided.tool,
            }),
            None => json!({}),
        },
    };
    if let Value::Object(members) = &mut data {
        members.retain(|_, value| !value.is_null());
    }
    data
}

#[cfg(test)]
mod tests;
