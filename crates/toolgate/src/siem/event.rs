//! A stored event as the gate hands it out, read once so that the formats work with typed values.

use serde_json::{Map, Value};
use thiserror::Error;
use toolgate_model::time::Timestamp;

/// An event that cannot be told in any format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "event {sequence} is damaged in the ledger ({reason}); look at it with `toolgate audit events --cursor`, and pass over it with --after {sequence}"
)]
pub struct DamagedEvent {
    /// Its place in the log, where it has one.
    pub sequence: Value,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// One event of the log, with its place in it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// Its place, counted from zero without gaps.
    pub sequence: u64,
    /// Its id.
    pub id: String,
    /// Its type, as it is stored.
    pub kind: String,
    /// Whose log it is in.
    pub tenant: String,
    /// Who did it.
    pub actor: String,
    /// The agent that it concerns.
    pub agent: Option<String>,
    /// The execution that it belongs to.
    pub run: Option<String>,
    /// When.
    pub time: Timestamp,
    /// What its type says about it.
    pub data: Map<String, Value>,
    /// All of it.
    pub whole: Value,
}

impl StoredEvent {
    /// Reads an event as the gate shows it.
    pub fn read(whole: Value) -> Result<Self, DamagedEvent> {
        let place = whole.get("sequence").cloned().unwrap_or_default();
        let damaged = |reason: &'static str| DamagedEvent { sequence: place.clone(), reason };
        let text = |name: &str| whole.get(name).and_then(Value::as_str).map(str::to_owned);
        let need = |name: &str, reason: &'static str| text(name).ok_or_else(|| damaged(reason));
        Ok(Self {
            sequence: place.as_u64().ok_or_else(|| damaged("it has no sequence"))?,
            id: need("id", "it has no id")?,
            kind: need("type", "it has no type")?,
            tenant: need("tenant", "it has no tenant")?,
            actor: need("actor", "it has no actor")?,
            agent: text("agent_id"),
            run: text("run_id"),
            time: Timestamp::parse(&need("timestamp", "it has no time")?).map_err(|_| damaged("its time is none"))?,
            data: whole.get("data").and_then(Value::as_object).cloned().ok_or_else(|| damaged("it has no data"))?,
            whole,
        })
    }

    /// The event lacks something that a format must have.
    pub fn damaged(&self, reason: &'static str) -> DamagedEvent {
        DamagedEvent { sequence: Value::from(self.sequence), reason }
    }

    /// A member of the data, where it is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.data.get(name).and_then(Value::as_str)
    }

    /// The call in the words of RFC 0064, which the two events that end a call carry besides their own.
    pub fn returned(&self) -> Option<&Map<String, Value>> {
        self.data.get("returned").and_then(Value::as_object)
    }

    /// The execution that it belongs to: the one that was named, or the call itself.
    pub fn run_or_call(&self) -> Option<&str> {
        self.run.as_deref().or_else(|| self.text("callId")).or_else(|| self.text("invocation_id"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_damaged_event_is_named_and_not_guessed_at() {
        let good = json!({
            "actor": "admin", "data": {}, "id": "evt_1", "sequence": 3, "tenant": "default",
            "timestamp": "2026-03-08T10:00:00.000+00:00", "type": "vault.created",
        });
        assert_eq!(StoredEvent::read(good.clone()).unwrap().time.as_millis(), 1_772_964_000_000);
        for name in ["actor", "data", "id", "sequence", "tenant", "timestamp", "type"] {
            let mut bad = good.clone();
            bad.as_object_mut().unwrap().remove(name);
            let error = StoredEvent::read(bad).unwrap_err();
            assert!(error.to_string().contains("is damaged"), "{name}: {error}");
        }
        let error = StoredEvent::read(json!({"damaged": "{", "sequence": 9})).unwrap_err();
        assert!(error.to_string().contains("event 9 is damaged"), "{error}");
    }
}
