//! Events as read from a log, an export or the API. The canonical text is authoritative: what this version cannot parse
//! is kept and shown unchanged.

use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use super::{Event, EventPayload};
use crate::context::{ContextId, GrantContext};
use crate::id::EventId;
use crate::principal::{PrincipalId, TenantId};
use crate::time::Timestamp;

/// A text that is not an event.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid event: {0}")]
pub struct EventError(String);

/// An event of a log that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("event {} is damaged in the ledger: {reason}", place(.sequence))]
pub struct DamagedEvent {
    /// Its position in the log, if that is known.
    pub sequence: Option<u64>,
    pub reason: String,
}

fn place(sequence: &Option<u64>) -> String {
    sequence.map_or_else(|| "without a sequence".to_owned(), |sequence| sequence.to_string())
}

/// An event with its position in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// Counted from zero without gaps.
    pub sequence: u64,
    pub event: Event,
    /// The whole event with its sequence, including what this version does not know.
    pub whole: Value,
}

/// The members of a stored event.
#[derive(Deserialize)]
struct Members {
    actor: PrincipalId,
    agent_id: Option<PrincipalId>,
    data: Value,
    id: EventId,
    intent_id: Option<ContextId>,
    plan_id: Option<ContextId>,
    run_id: Option<String>,
    task_id: Option<ContextId>,
    tenant: TenantId,
    timestamp: Timestamp,
    r#type: String,
}

impl Event {
    /// Parses the canonical text of an event. A payload that cannot be parsed is [`EventPayload::Unknown`].
    pub fn read(canonical: &str) -> Result<Self, EventError> {
        serde_json::from_str::<Members>(canonical).map_err(|error| EventError(error.to_string()))?.try_into()
    }
}

impl TryFrom<Members> for Event {
    type Error = EventError;

    fn try_from(members: Members) -> Result<Self, EventError> {
        let Members { actor, agent_id, data, id, intent_id, plan_id, run_id, task_id, tenant, timestamp, r#type } =
            members;
        if !data.is_object() {
            return Err(EventError("`data` is not an object".to_owned()));
        }
        Ok(Self {
            id,
            tenant,
            actor,
            agent: agent_id,
            context: GrantContext { intent_id, plan_id, task_id },
            run: run_id,
            time: timestamp,
            payload: EventPayload::read(&r#type, &data),
        })
    }
}

impl StoredEvent {
    /// Parses the stored canonical text of an event with this sequence.
    pub fn read(canonical: &str, sequence: u64) -> Result<Self, DamagedEvent> {
        let damaged = |reason: String| DamagedEvent { sequence: Some(sequence), reason };
        let mut whole: Value = serde_json::from_str(canonical).map_err(|error| damaged(error.to_string()))?;
        if let Value::Object(members) = &mut whole {
            members.insert("sequence".to_owned(), json!(sequence));
        }
        Self::of_whole(whole, sequence)
    }

    /// Parses an event as the API shows it, with its sequence among its members.
    pub fn from_shown(whole: Value) -> Result<Self, DamagedEvent> {
        match whole.get("sequence").and_then(Value::as_u64) {
            Some(sequence) => Self::of_whole(whole, sequence),
            None => Err(DamagedEvent { sequence: None, reason: "it has no sequence".to_owned() }),
        }
    }

    fn of_whole(whole: Value, sequence: u64) -> Result<Self, DamagedEvent> {
        let members = Members::deserialize(&whole).map_err(|error| EventError(error.to_string()));
        match members.and_then(Event::try_from) {
            Ok(event) => Ok(Self { sequence, event, whole }),
            Err(EventError(reason)) => Err(DamagedEvent { sequence: Some(sequence), reason }),
        }
    }

    /// The stored payload.
    pub fn data(&self) -> &Value {
        self.whole.get("data").unwrap_or(&Value::Null)
    }
}
