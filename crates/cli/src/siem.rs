//! Formats audit events as lines of JSON: as stored, for OpenWOP, or as OCSF. Does no IO.

mod ocsf;

use serde_json::{Value, json};
use toolgate_model::canonical::to_canonical;
use toolgate_model::event::{DamagedEvent, StoredEvent};
use toolgate_model::openwop_event::RunEvent;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFormat {
    /// The stored event with its sequence.
    Stored,
    /// An event of OCSF 1.3.0.
    Ocsf,
    /// The envelope of OpenWOP.
    OpenWop,
}

impl LineFormat {
    /// Including the line break.
    pub fn line(self, event: &StoredEvent) -> Result<Vec<u8>, DamagedEvent> {
        let mut line = match self {
            Self::Stored => to_canonical(&event.whole),
            Self::Ocsf => to_canonical(&Value::Object(ocsf::to_ocsf(event))),
            Self::OpenWop => to_canonical(&json!(RunEvent::of(event, event.sequence)?)),
        };
        line.push(b'\n');
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_model::audit_export::event_line;

    use super::*;

    const CALL: &str = "inv_01KGYB3881EC1R60R30C1G60R3";
    const EVENT: &str = "evt_01KGYB3881EC1R60R30C1G60R3";

    #[test]
    fn a_stored_line_is_the_line_of_the_verifiable_export() {
        let mut value = json!({
            "actor": "admin", "data": {"vault_id": "vlt_1", "owner_id": "\u{e9}\u{1f600}"}, "id": EVENT,
            "tenant": "default", "timestamp": "2026-03-08T10:00:00.000+00:00", "type": "vault.created",
        });
        let exported = event_line(7, &String::from_utf8(to_canonical(&value)).unwrap()).unwrap();
        value["sequence"] = json!(7);
        let event = StoredEvent::from_shown(value).unwrap();
        assert_eq!(LineFormat::Stored.line(&event).unwrap(), exported);
    }

    #[test]
    fn every_line_is_one_line() {
        let value = json!({
            "actor": "admin", "data": {"reason": "a\nb\u{2028}c", "grant_id": "grt_1"}, "id": EVENT, "sequence": 0,
            "tenant": "default", "timestamp": "2026-03-08T10:00:00.000+00:00", "type": "grant.revoked", "run_id": "r",
        });
        let event = StoredEvent::from_shown(value).unwrap();
        for format in [LineFormat::Stored, LineFormat::Ocsf, LineFormat::OpenWop] {
            let line = format.line(&event).unwrap();
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1, "{format:?}");
        }
    }

    #[test]
    fn openwop_sees_how_a_call_ended_and_not_what_was_in_it() {
        let returned = json!({
            "agentId": "billing", "callId": CALL, "causationId": EVENT, "status": "ok", "toolName": "payments.pay",
            "type": "agent.toolReturned",
        });
        let data = json!({
            "arguments_hash": "ab", "cost": {"api_units": 1, "estimated_cost_usd": null}, "duration_ms": 1,
            "grant_id": null, "invocation_id": CALL, "parameters_summary": {"a": "b"}, "returned": returned,
            "service": null, "status": "success", "tool": "pay",
        });
        let mut value = json!({
            "actor": "billing", "data": data, "id": EVENT, "run_id": "run-1", "sequence": 7, "tenant": "default",
            "timestamp": "2026-03-08T10:00:00.000+00:00", "type": "tool.invoked",
        });
        let line = LineFormat::OpenWop.line(&StoredEvent::from_shown(value.clone()).unwrap()).unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&line).unwrap(),
            json!({
                "causationId": EVENT, "eventId": EVENT, "runId": "run-1", "sequence": 7, "type": "agent.toolReturned",
                "timestamp": "2026-03-08T10:00:00.000+00:00",
                "payload": {"agentId": "billing", "callId": CALL, "status": "ok", "toolName": "payments.pay"},
            })
        );
        value["data"] = json!({});
        let refused = LineFormat::OpenWop.line(&StoredEvent::from_shown(value).unwrap()).unwrap_err();
        assert!(refused.to_string().contains("event 7 is damaged"), "{refused}");
    }
}
