//! Events as they are written, signed and read back.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::canonical::to_canonical;
use crate::constraint::Cost;
use crate::credential::ServiceName;
use crate::descriptor::ToolId;
use crate::id::{GrantId, InvocationId};
use crate::invocation::InvocationStatus;
use crate::merkle::sha256;
use crate::permission::PermissionSet;
use crate::principal_scope::HeldScopes;

mod golden;

fn event(invoked: ToolInvoked) -> Event {
    let time = Timestamp::from_millis(1_770_544_800_123).unwrap();
    Event {
        id: EventId::new(time, [7; 10]),
        tenant: TenantId::parse("default").unwrap(),
        actor: PrincipalId::parse("admin").unwrap(),
        agent: Some(PrincipalId::parse("billing").unwrap()),
        context: serde_json::from_value(json!({"intent_id": "i", "plan_id": "p", "task_id": "t"})).unwrap(),
        run: Some("run-1".to_owned()),
        time,
        payload: EventPayload::ToolInvoked(Box::new(invoked)),
    }
}

fn invoked() -> ToolInvoked {
    let time = Timestamp::from_millis(1_770_544_800_000).unwrap();
    let parameters = json!({"b": "\u{1f600} \" \n", "a": [1, 2.50], "\u{e9}": null});
    ToolInvoked {
        invocation_id: InvocationId::new(time, [1; 10]),
        grant_id: Some(GrantId::new(time, [2; 10])),
        service: Some(ServiceName::parse("stripe").unwrap()),
        tool: "charges.create".into(),
        parameters_summary: Arc::new(parameters.as_object().cloned().unwrap()),
        arguments_hash: "ab".repeat(32).into(),
        status: InvocationStatus::Error,
        error_code: Some("SERVICE_ERROR".to_owned()),
        http_status: Some(500),
        duration_ms: Some(342),
        cost: Cost::from_dollars(0.02).into(),
        cost_basis: None,
        request_fingerprint: Some("cd".repeat(32).into()),
        reported: true,
        returned: None,
        trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned()),
    }
}

/// What is written member by member is what the general writer makes of the same value.
#[test]
fn an_event_is_written_in_canonical_form() {
    let bare = ToolInvoked {
        grant_id: None,
        service: None,
        error_code: None,
        http_status: None,
        duration_ms: None,
        cost: None.into(),
        request_fingerprint: None,
        reported: false,
        trace_id: None,
        parameters_summary: Arc::default(),
        ..invoked()
    };
    for event in [event(invoked()), event(bare)] {
        let written = event.to_canonical().unwrap();
        let read: Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(String::from_utf8(to_canonical(&read)), String::from_utf8(written));
        assert_eq!(read["timestamp"], json!(event.time));
        assert_eq!(read["id"], json!(event.id));
    }
}

#[test]
fn a_forbidden_reference_has_one_id_and_says_whose_it_is() {
    let data = |agent: Option<&str>| {
        let agent = agent.map(|agent| PrincipalId::parse(agent).unwrap());
        let tool = ToolId::parse("connector:stripe.charges.create").unwrap();
        let payload = EventPayload::ToolForbidden(ToolForbidden::at_load(agent.as_ref(), &tool));
        assert_eq!(payload.name(), "agent.toolReturned");
        json!(payload)
    };
    let expected = json!({
        "agentId": "billing", "status": "forbidden", "toolName": "connector:stripe.charges.create",
        "callId": format!("forbidden:{}", sha256(b"connector:stripe.charges.create").to_hex()),
    });
    assert_eq!(data(Some("billing")), expected);
    assert_eq!(data(Some("ab"))["agentId"], "agent:ab");
    assert_eq!(data(None)["agentId"], "core.system");
}

#[test]
fn a_change_of_a_principal_tells_its_new_scopes_and_permissions_only_where_they_changed() {
    let data = |scopes, permissions| {
        let agent_id = PrincipalId::parse("billing").unwrap();
        json!(AgentUpdated {
            agent_id,
            budget: None,
            revision: 2,
            changed: vec!["name".to_owned()],
            scopes,
            permissions
        })
    };
    assert_eq!(data(None, None), json!({"agent_id": "billing", "revision": 2, "changed": ["name"]}));
    let told = data(Some(HeldScopes::default()), Some(PermissionSet::of_an_agent()));
    assert_eq!((&told["scopes"], &told["permissions"]), (&json!([]), &json!(["tools.invoke"])));
}

fn stored(kind: &str, data: Value) -> String {
    let event = json!({
        "actor": "admin", "data": data, "id": "evt_01KGYB38B4FMEST78X3MEHT78X", "tenant": "default",
        "timestamp": "2026-02-08T10:00:00.029+00:00", "type": kind,
    });
    String::from_utf8(to_canonical(&event)).unwrap()
}

#[test]
fn what_a_newer_version_wrote_is_kept_as_it_is() {
    for (kind, data) in [
        ("approval.given", json!({"text": "\u{e9}", "a": [1, {"b": null}]})),
        ("grant.revoked", json!({"grant": "another form"})),
    ] {
        let canonical = stored(kind, data.clone());
        let event = Event::read(&canonical).unwrap();
        assert_eq!(event.payload, EventPayload::Unknown(UnknownPayload { kind: kind.to_owned(), data: data.clone() }));
        assert_eq!((event.payload.name(), event.payload.kind()), (kind, None));
        assert_eq!(String::from_utf8(event.to_canonical().unwrap()).unwrap(), canonical);
        assert_eq!(StoredEvent::read(&canonical, 1).unwrap().data(), &data);
    }
    let data = json!({"grant_id": GrantId::new(Timestamp::EPOCH, [1; 10]), "since": "a later version"});
    let read = StoredEvent::read(&stored("grant.resumed", data.clone()), 1).unwrap();
    assert_eq!((read.event.payload.kind(), read.data()), (Some(EventKind::GrantResumed), &data));
}

#[test]
fn what_an_earlier_version_wrote_is_read() {
    let denied = json!({
        "arguments_hash": "ab", "error_code": "GRANT_REVOKED", "grant_id": null, "reason": "gone", "service": null,
        "invocation_id": InvocationId::new(Timestamp::EPOCH, [1; 10]), "stage": "authorize", "tool": "charges.create",
    });
    let rotated = json!({"credential_id": "cred_01KGYB3880E40R2081040G2081", "rotated_by": "admin", "version": 2});
    for (kind, data) in [(EventKind::ToolDenied, denied), (EventKind::CredentialRotated, rotated)] {
        assert_eq!(Event::read(&stored(kind.as_str(), data)).unwrap().payload.kind(), Some(kind));
    }
}

#[test]
fn a_damaged_event_is_named_and_not_guessed_at() {
    let good = json!({
        "actor": "admin", "data": {}, "id": "evt_01KGYB38B4FMEST78X3MEHT78X", "sequence": 3, "tenant": "default",
        "timestamp": "2026-02-08T10:00:00.000+00:00", "type": "vault.created",
    });
    assert_eq!(StoredEvent::from_shown(good.clone()).unwrap().event.time.as_millis(), 1_770_544_800_000);
    for name in ["actor", "data", "id", "sequence", "tenant", "timestamp", "type"] {
        for damage in [None, Some(json!(1)), Some(json!("\n"))] {
            let mut bad = good.clone();
            bad.as_object_mut().unwrap().remove(name);
            bad.as_object_mut().unwrap().extend(damage.map(|damage| (name.to_owned(), damage)));
            if bad["sequence"] == 1 || bad["type"] == "\n" {
                continue;
            }
            let error = StoredEvent::from_shown(bad).unwrap_err();
            assert!(error.to_string().contains("is damaged"), "{name}: {error}");
        }
    }
    let error = StoredEvent::from_shown(json!({"damaged": "{", "sequence": 9})).unwrap_err();
    assert!(error.to_string().contains("event 9 is damaged"), "{error}");
    assert_eq!(StoredEvent::read("{", 9).unwrap_err().sequence, Some(9));
}
