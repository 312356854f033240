//! Events as they are written, signed and read back.

use serde_json::Map;

use super::*;
use crate::canonical::to_canonical;
use crate::constraint::Cost;
use crate::invocation::InvocationStatus;

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
        happening: Happening::ToolInvoked(Box::new(invoked)),
    }
}

fn invoked() -> ToolInvoked {
    let time = Timestamp::from_millis(1_770_544_800_000).unwrap();
    let parameters = json!({"b": "\u{1f600} \" \n", "a": [1, 2.50], "\u{e9}": null});
    ToolInvoked {
        invocation: InvocationId::new(time, [1; 10]),
        grant: Some(GrantId::new(time, [2; 10])),
        service: Some(ServiceName::parse("stripe").unwrap()),
        tool: "charges.create".to_owned(),
        parameters_summary: parameters.as_object().cloned().unwrap(),
        arguments_hash: "ab".repeat(32),
        status: InvocationStatus::Error,
        error_code: Some("SERVICE_ERROR".to_owned()),
        http_status: Some(500),
        duration_ms: Some(342),
        cost: Cost::from_dollars(0.02),
        request_fingerprint: Some("cd".repeat(32)),
        reported: true,
        returned: None,
    }
}

/// What is written member by member is what the general writer makes of the same value.
#[test]
fn an_event_is_written_in_canonical_form() {
    let bare = ToolInvoked {
        grant: None,
        service: None,
        error_code: None,
        http_status: None,
        duration_ms: None,
        cost: None,
        request_fingerprint: None,
        reported: false,
        parameters_summary: Map::new(),
        ..invoked()
    };
    for event in [event(invoked()), event(bare)] {
        let written = event.to_canonical();
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
        let happening = Happening::ToolForbiddenAtLoad { agent, tool };
        assert_eq!(happening.name(), "agent.toolReturned");
        happening.data()
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
        let principal = PrincipalId::parse("billing").unwrap();
        Happening::AgentUpdated { principal, revision: 2, changed: vec!["name"], scopes, permissions }.data()
    };
    assert_eq!(data(None, None), json!({"agent_id": "billing", "revision": 2, "changed": ["name"]}));
    let told = data(Some(HeldScopes::default()), Some(PermissionSet::of_an_agent()));
    assert_eq!((&told["scopes"], &told["permissions"]), (&json!([]), &json!(["tools.invoke"])));
}
