//! What guardians may change, and what they must not.

use toolgate_model::guard::{Direction, FailureClass, Role};

use super::*;

fn modified(event: &HookEvent<'_>, request: Value) -> Result<Content<'static>, FailureClass> {
    match given(json!({"decision": "modify", "modifiedRequest": request}), event)?.decision {
        GuardianDecision::Modify(content) => Ok(content),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_change_of_what_it_is_about_is_refused() {
    for (hook, pointer, value) in [
        (Hook::ToolCallRequest, "/id", json!("q-2")),
        (Hook::ToolCallRequest, "/jsonrpc", json!("3.0")),
        (Hook::ToolCallRequest, "/method", json!("steps/memoryStore")),
        (Hook::ToolCallRequest, "/params/context/agent/id", json!("other")),
        (Hook::ToolCallRequest, "/params/context/agent/extra", json!("other")),
        (Hook::ToolCallRequest, "/params/context/session/id", json!("other")),
        (Hook::ToolCallRequest, "/params/context/user", json!("other")),
        (Hook::ToolCallRequest, "/params/context/timestamp", json!("2026-05-10T10:34:55Z")),
        (Hook::ToolCallRequest, "/params/context", json!([])),
        (Hook::ToolCallRequest, "/params/toolCallRequest/executionId", json!("other")),
        (Hook::ToolCallRequest, "/params/toolCallRequest/toolId", json!("other")),
        (Hook::ToolCallResult, "/params/toolCallResult/executionId", json!("other")),
        (Hook::ToolCallResult, "/params/toolCallResult/toolId", json!("other")),
        (Hook::Message(Role::User), "/params/message/role", json!("system")),
        (Hook::AgentTrigger, "/params/trigger/event", json!({"type": "x", "id": "y"})),
        (Hook::MemoryStore, "/params/context/agent/id", json!("other")),
        (Hook::Mcp(Direction::Outbound), "/params/message/id", json!(2)),
        (Hook::Mcp(Direction::Outbound), "/params/message/method", json!("tools/list")),
        (Hook::Mcp(Direction::Outbound), "/params/message/params/name", json!("other")),
        (Hook::Mcp(Direction::Outbound), "/params/direction", json!("inbound")),
        (Hook::A2aSend, "/params/payload/id", json!(8)),
        (Hook::A2aSend, "/params/payload/params/id", json!("task-2")),
        (Hook::A2aSend, "/params/payload/method", json!("tasks/cancel")),
    ] {
        for dialect in DIALECTS {
            let event = event(hook);
            let mut whole = ask(&event, "q-1", dialect).unwrap();
            assert_eq!(modified(&event, whole.clone()), Ok(event.content.clone()), "{hook:?}");
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            whole.pointer_mut(parent).unwrap()[name] = value.clone();
            assert_eq!(modified(&event, whole), Err(FailureClass::IdentityChange), "{hook:?} {pointer}");
        }
    }
    let event = event(Hook::ToolCallRequest);
    for member in ["executionId", "toolId"] {
        let fragment = json!({"inputs": [], member: "other"});
        assert_eq!(modified(&event, fragment), Err(FailureClass::IdentityChange));
    }
}

#[test]
fn what_is_left_out_or_null_is_not_changed() {
    let event = event(Hook::ToolCallRequest);
    let inputs = json!([{"name": "a", "id": null, "value": 1}]);
    let expected = Ok(arguments(json!({"a": 1})));
    for change in [
        json!({"inputs": inputs}),
        json!({"inputs": inputs, "toolId": "zendesk.create_ticket", "executionId": null, "note": null}),
        json!({"method": "steps/toolCallRequest", "params": {"toolCallRequest": {"inputs": inputs}}}),
        json!({"method": "steps/toolCallRequest", "params": {
            "toolCallRequest": {"inputs": inputs}, "reasoning": "because",
            "context": {"agent": {"id": "support-triage", "description": null}, "user": null},
        }}),
    ] {
        assert_eq!(modified(&event, change.clone()), expected, "{change}");
    }
}

#[test]
fn a_change_that_cannot_be_applied_is_refused() {
    let whole = |hook: Hook, params: Value| json!({"method": asked(hook)["method"], "params": params});
    for (hook, change) in [
        (Hook::ToolCallRequest, json!("x")),
        (Hook::ToolCallRequest, json!([])),
        (Hook::ToolCallRequest, json!({})),
        (Hook::ToolCallRequest, json!({"inputs": null})),
        (Hook::ToolCallRequest, json!({"input": [{"name": "a", "value": 1}]})),
        (Hook::ToolCallRequest, json!({"inputs": "x"})),
        (Hook::ToolCallRequest, json!({"inputs": [{"name": 1, "value": 1}]})),
        (Hook::ToolCallRequest, json!({"inputs": [{"name": "a"}]})),
        (Hook::ToolCallRequest, json!({"inputs": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]})),
        (Hook::ToolCallRequest, json!({"inputs": [], "unknown": 1})),
        (Hook::ToolCallRequest, whole(Hook::ToolCallRequest, json!([]))),
        (Hook::ToolCallRequest, whole(Hook::ToolCallRequest, json!({}))),
        (Hook::ToolCallRequest, whole(Hook::ToolCallRequest, json!({"toolCallRequest": {}}))),
        (
            Hook::ToolCallRequest,
            whole(Hook::ToolCallRequest, json!({"toolCallRequest": {"inputs": []}, "reasoning": "other"})),
        ),
        (Hook::ToolCallResult, json!({"result": {"outputs": [{"kind": "data", "data": 1}]}})),
        (Hook::ToolCallResult, json!({"result": {"outputs": [], "isError": 1}})),
        (Hook::Message(Role::Agent), json!({"content": "text"})),
        (Hook::MemoryStore, json!({"memory": [1]})),
        (Hook::KnowledgeRetrieval, json!({"results": [{"id": "x"}]})),
        (Hook::Mcp(Direction::Inbound), json!({"message": "x"})),
        (Hook::A2aCancel, json!({"payload": {"jsonrpc": "2.0", "id": 7, "params": {"id": "task-1"}}})),
        (Hook::A2aOther, json!({"payload": {"jsonrpc": "2.0", "id": 7, "params": {"id": "task-1"}}})),
    ] {
        assert_eq!(modified(&event(hook), change.clone()), Err(FailureClass::BadModify), "{hook:?} {change}");
    }
}

#[test]
fn a_guardian_may_answer_with_the_message_of_mcp_as_params() {
    let hook = Hook::Mcp(Direction::Outbound);
    let Content::Message(changed) = content(hook, "[redacted]") else { panic!("a message") };
    let whole = json!({"jsonrpc": "2.0", "id": "q-1", "method": "protocols/MCP", "params": changed});
    assert_eq!(modified(&event(hook), whole), Ok(content(hook, "[redacted]")));
}

#[test]
fn a_changed_result_is_read_back_as_the_kind_it_was() {
    let change = |texts: &[&str]| {
        let outputs: Vec<_> = texts.iter().map(|text| json!({"kind": "text", "text": text})).collect();
        json!({"result": {"outputs": outputs}})
    };
    for (shown, texts, expected) in [
        (json!("a"), &["b"][..], Some(json!("b"))),
        (json!("{}"), &["[1]"], Some(json!("[1]"))),
        (json!("a"), &[], None),
        (json!("a"), &["b", "c"], None),
        (json!(["a"]), &["b"], Some(json!(["b"]))),
        (json!(["a", "b"]), &[], Some(json!([]))),
        (json!([]), &["a", "b"], Some(json!(["a", "b"]))),
        (json!({"a": 1}), &[r#"{"a": 2}"#], Some(json!({"a": 2}))),
        (json!({"a": 1}), &["[REDACTED]"], None),
        (json!({"a": 1}), &[r#"{"a": 1, "a": 2}"#], None),
        (json!({"a": 1}), &["1", "2"], None),
        (json!(null), &["null"], Some(json!(null))),
        (json!([1]), &["[2]"], Some(json!([2]))),
    ] {
        let mut event = event(Hook::ToolCallResult);
        event.content = Content::Result { value: Cow::Owned(shown.clone()), is_error: true };
        let expected = expected
            .map(|value| Content::Result { value: Cow::Owned(value), is_error: true })
            .ok_or(FailureClass::BadModify);
        assert_eq!(modified(&event, change(texts)), expected, "{shown} {texts:?}");
        let told = ask(&event, "q-1", Dialect::Aos).unwrap()["params"]["toolCallResult"]["result"].clone();
        assert_eq!(modified(&event, json!({"result": told})), Ok(event.content.clone()), "{shown}");
    }
}

#[test]
fn an_event_without_ids_is_asked_about_with_what_stands_in_for_them() {
    let mut event = event(Hook::ToolCallResult);
    (event.session, event.turn, event.step, event.user) = (None, None, None, None);
    (event.tool, event.reasoning, event.agent.name) = (None, None, None);
    let asked = ask(&event, "q-1", Dialect::Joch).unwrap();
    assert_eq!(
        asked["params"]["context"],
        json!({
            "agent": {"id": "support-triage", "name": "support-triage"}, "session": {"id": "exec-1"},
            "turnId": "exec-1", "stepId": "exec-1", "timestamp": "2026-05-10T10:35:00.250+00:00",
        })
    );
    event.execution = None;
    let asked = ask(&event, "q-1", Dialect::Aos).unwrap();
    assert_eq!(asked["params"]["toolCallResult"]["executionId"], "q-1");
    assert_eq!(
        asked["params"]["context"]["agent"],
        json!({
            "id": "support-triage", "name": "support-triage", "instructions": "", "version": "", "url": "",
            "provider": {"name": "Toolgate", "url": ""},
        })
    );
    event.content = Content::Memory(Vec::new());
    assert_eq!(ask(&event, "q-1", Dialect::Aos), None);
}
