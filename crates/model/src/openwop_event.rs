//! Stored events in the form of OpenWOP: an envelope around a payload, content-free like the log. One leaf of the log
//! may describe a call in two vocabularies; only that of RFC 0064 is shown.

use serde::Serialize;
use serde_json::{Value, json};

use crate::event::{DamagedEvent, EventKind, EventPayload, StoredEvent};
use crate::guard::{Dialect, Hook, HookDecision, VerdictKind};
use crate::hook::{RETURNED, ReturnError, ReturnStatus, ToolReturned};
use crate::id::{ApprovalId, EventId, InvocationId};
use crate::principal::PrincipalId;
use crate::time::Timestamp;

mod schema;

#[cfg(test)]
mod tests;

/// The run of events outside every run.
pub const NO_RUN: &str = "core.system";

/// The protocol's type for a question to a person.
const INTERRUPT: &str = "interrupt.requested";

/// The stored types of the return of a call, besides the one that is shown.
const STORED_RETURNS: [EventKind; 2] = [EventKind::ToolDenied, EventKind::ToolInvoked];

/// An event in its envelope. Closed: it has no other members.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEvent {
    pub event_id: EventId,
    /// The execution that it belongs to; [`NO_RUN`] if there is none.
    pub run_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub payload: Value,
    pub timestamp: Timestamp,
    /// Its position in the log or in the run, depending on the reader.
    pub sequence: u64,
    /// The event that it follows from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<EventId>,
}

impl RunEvent {
    /// The event in the shown form. A payload that this version cannot parse is shown as stored, unless the protocol
    /// closes the payload of its type.
    pub fn of(stored: &StoredEvent, sequence: u64) -> Result<Self, DamagedEvent> {
        let event = &stored.event;
        let mut causation_id = None;
        let payload = match &event.payload {
            EventPayload::ToolDenied(_) | EventPayload::ToolInvoked(_) => {
                let returned = event.returned();
                causation_id = returned.as_ref().and_then(|returned| returned.causation_id);
                json!(returned.as_deref().map(Returned::of))
            }
            EventPayload::ApprovalGranted(decided)
            | EventPayload::ApprovalOverridden(decided)
            | EventPayload::ApprovalRejected(decided) => json!(Decided {
                gate_id: decided.gate_id,
                principal: decided.principal.as_ref(),
                reason: decided.reason.as_deref(),
            }),
            EventPayload::HookDecided(decision) => json!(GuardianDecision::of(decision)),
            EventPayload::Unknown(unknown) if EventKind::parse(&unknown.kind).is_some_and(is_closed) => {
                let reason = format!("could not parse the payload of {}", unknown.kind);
                return Err(DamagedEvent { sequence: Some(stored.sequence), reason });
            }
            _ => stored.data().clone(),
        };
        Ok(Self {
            event_id: event.id,
            run_id: event.run.clone().unwrap_or_else(|| NO_RUN.to_owned()),
            kind: shown_type(event.payload.name()).to_owned(),
            payload,
            timestamp: event.time,
            sequence,
            causation_id,
        })
    }

    /// The JSON Schema of such events, with the payloads of the types that the protocol defines.
    pub fn schema() -> Value {
        schema::of_event()
    }
}

/// The stored types of events that are shown as this type; `None` for a type that is never shown.
pub fn stored_types(shown: &str) -> Option<Vec<String>> {
    let stored = EventKind::ALL.iter().map(|kind| kind.as_str()).filter(|kind| shown_type(kind) == shown);
    let stored: Vec<String> = stored.map(str::to_owned).collect();
    match stored.is_empty() {
        // The log may contain a type that this version does not have.
        true => EventKind::parse(shown).is_none().then(|| vec![shown.to_owned()]),
        false => Some(stored),
    }
}

fn shown_type(stored: &str) -> &str {
    match EventKind::parse(stored) {
        Some(kind) if STORED_RETURNS.contains(&kind) => RETURNED,
        Some(EventKind::ApprovalRequested) => INTERRUPT,
        _ => stored,
    }
}

/// Whether less is shown than is stored.
fn is_closed(kind: EventKind) -> bool {
    use EventKind::{ApprovalGranted, ApprovalOverridden, ApprovalRejected, HookDecided};
    STORED_RETURNS.contains(&kind)
        || matches!(kind, ApprovalGranted | ApprovalOverridden | ApprovalRejected | HookDecided)
}

/// The return of a call (RFC 0064).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Returned<'a> {
    agent_id: &'a str,
    call_id: InvocationId,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ReturnError>,
    status: ReturnStatus,
    tool_name: &'a str,
}

impl<'a> Returned<'a> {
    fn of(returned: &'a ToolReturned) -> Self {
        Self {
            agent_id: &returned.agent_id,
            call_id: returned.call_id,
            duration_ms: returned.duration_ms,
            error: returned.error.as_ref(),
            status: returned.status,
            tool_name: &returned.tool_name,
        }
    }
}

/// Which gate was decided, how, by whom and why (RFC 0051).
#[derive(Serialize)]
struct Decided<'a> {
    #[serde(rename = "gateId")]
    gate_id: ApprovalId,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a PrincipalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// That guardians decided and the result, without reasons and subject.
#[derive(Serialize)]
struct GuardianDecision<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<ApprovalId>,
    dialect: Dialect,
    effective: VerdictKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_after: Option<&'a str>,
    hash_before: &'a str,
    hook: Hook,
    #[serde(skip_serializing_if = "Option::is_none")]
    invocation_id: Option<InvocationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
}

impl<'a> GuardianDecision<'a> {
    fn of(decision: &'a HookDecision) -> Self {
        Self {
            approval_id: decision.approval,
            dialect: decision.dialect,
            effective: decision.effective,
            hash_after: decision.hash_after.as_deref(),
            hash_before: &decision.hash_before,
            hook: decision.hook,
            invocation_id: decision.invocation,
            policy_version: decision.policy_version,
            tool: decision.tool.as_deref(),
        }
    }
}
