//! What is read of each hook, and how what is wrong is named.

use toolgate_model::guard::Role;

use super::*;

#[test]
fn whatever_is_wrong_is_named_by_its_path() {
    let sets = |hook: Hook, pointer: &str, value: Value| {
        let mut sent = asked(hook);
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        sent.pointer_mut(parent).unwrap()[name] = value;
        sent
    };
    for (hook, pointer, value, path) in [
        (Hook::ToolCallRequest, "/params/context", json!(null), "params.context"),
        (Hook::ToolCallRequest, "/params/context/agent", json!("a"), "params.context.agent"),
        (Hook::ToolCallRequest, "/params/context/agent/id", json!(null), "params.context.agent.id"),
        (Hook::ToolCallRequest, "/params/context/agent/id", json!(""), "params.context.agent.id"),
        (Hook::ToolCallRequest, "/params/context/agent/name", json!(1), "params.context.agent.name"),
        (Hook::ToolCallRequest, "/params/context/session", json!("s"), "params.context.session"),
        (Hook::ToolCallRequest, "/params/context/session/id", json!(1), "params.context.session.id"),
        (Hook::ToolCallRequest, "/params/context/turnId", json!(1), "params.context.turnId"),
        (Hook::ToolCallRequest, "/params/context/user/id", json!([]), "params.context.user.id"),
        (Hook::ToolCallRequest, "/params/context/timestamp", json!("yesterday"), "params.context.timestamp"),
        (Hook::ToolCallRequest, "/params/context/timestamp", json!(17), "params.context.timestamp"),
        (Hook::ToolCallRequest, "/params/reasoning", json!(17), "params.reasoning"),
        (Hook::ToolCallRequest, "/params/toolCallRequest", json!(null), "params.toolCallRequest"),
        (Hook::ToolCallRequest, "/params/toolCallRequest/toolId", json!(null), "params.toolCallRequest.toolId"),
        (Hook::ToolCallRequest, "/params/toolCallRequest/executionId", json!(1), "params.toolCallRequest.executionId"),
        (Hook::ToolCallRequest, "/params/toolCallRequest/inputs", json!(null), "params.toolCallRequest.inputs"),
        (Hook::ToolCallRequest, "/params/toolCallRequest/inputs", json!([1]), "params.toolCallRequest.inputs[0]"),
        (
            Hook::ToolCallRequest,
            "/params/toolCallRequest/inputs",
            json!([{"name": "a"}]),
            "params.toolCallRequest.inputs[0].value",
        ),
        (
            Hook::ToolCallRequest,
            "/params/toolCallRequest/inputs",
            json!([{"name": "a", "value": 1}, {"name": "a", "value": 1}]),
            "params.toolCallRequest.inputs[1].name",
        ),
        (Hook::ToolCallResult, "/params/toolCallResult/result", json!(null), "params.toolCallResult.result"),
        (
            Hook::ToolCallResult,
            "/params/toolCallResult/result/outputs",
            json!([{"kind": "data", "data": 1}]),
            "params.toolCallResult.result.outputs[0].kind",
        ),
        (
            Hook::ToolCallResult,
            "/params/toolCallResult/result/isError",
            json!("no"),
            "params.toolCallResult.result.isError",
        ),
        (Hook::Message(Role::User), "/params/message/role", json!("assistant"), "params.message.role"),
        (Hook::Message(Role::User), "/params/message/content", json!("hello"), "params.message.content"),
        (Hook::AgentTrigger, "/params/trigger/content", json!([{}]), "params.trigger.content[0].kind"),
        (
            Hook::AgentTrigger,
            "/params/trigger/content",
            json!([{"kind": "file", "file": {"name": "a"}}]),
            "params.trigger.content[0].file.uri",
        ),
        (Hook::MemoryStore, "/params/memory", json!(["a", 1]), "params.memory[1]"),
        (Hook::KnowledgeRetrieval, "/params/knowledgeStep/results", json!(null), "params.knowledgeStep.results"),
        (
            Hook::KnowledgeRetrieval,
            "/params/knowledgeStep/results",
            json!([{"id": "1"}]),
            "params.knowledgeStep.results[0].content",
        ),
        (Hook::Mcp(toolgate_model::guard::Direction::Inbound), "/params/message", json!({}), "params.message.method"),
        (Hook::Mcp(toolgate_model::guard::Direction::Inbound), "/params/direction", json!("up"), "params.direction"),
        (
            Hook::Mcp(toolgate_model::guard::Direction::Outbound),
            "/params/message/params/name",
            json!(null),
            "params.message.params.name",
        ),
        (Hook::A2aSend, "/params/payload", json!("x"), "params.payload"),
        (Hook::A2aSend, "/params/payload/method", json!("tasks/cancel"), "params.payload.method"),
        (Hook::A2aSend, "/params/payload/method", json!("tasks/unknown"), "params.payload.method"),
    ] {
        assert_eq!(invalid_member(&sets(hook, pointer, value)), path);
    }
}

#[test]
fn only_the_agent_and_the_payload_must_be_there() {
    let sent = json!({"jsonrpc": "2.0", "id": 1, "method": "steps/toolCallRequest", "params": {
        "toolCallRequest": {"toolId": "t", "inputs": []}, "context": {"agent": {"id": "a"}},
    }});
    let event = question(&sent).event;
    assert_eq!((event.agent.id.as_ref(), event.tool.as_deref()), ("a", Some("t")));
    assert_eq!((event.execution, event.session, event.turn, event.step, event.user), (None, None, None, None, None));
    assert_eq!(event.time, now());
}

#[test]
fn parts_are_told_by_what_they_have_and_files_keep_all_that_is_said_of_them() {
    let mut sent = asked(Hook::Message(Role::User));
    let file =
        json!({"name": "a.png", "mimeType": "image/png", "bytes": "QQ==", "uri": "https://x.example", "alt": "a"});
    sent["params"]["message"]["content"] =
        json!([{"text": "hi"}, {"data": 1}, {"file": file}, {"kind": "data", "data": null}]);
    let q = question(&sent);
    let place = json!({"bytes": "QQ==", "uri": "https://x.example", "alt": "a"});
    let file_part =
        PartBody::File(File { name: Some("a.png".to_owned()), mime_type: Some("image/png".to_owned()), place });
    let bodies = [PartBody::Text("hi".to_owned()), PartBody::Data(json!(1)), file_part, PartBody::Data(Value::Null)];
    let parts: Vec<_> = bodies.into_iter().map(|body| Part { body, metadata: None }).collect();
    assert_eq!(q.event.content, Content::Parts(parts.clone()));
    let told = modify(&q, &Content::Parts(parts), ModifiedForm::Fragment)["result"]["modifiedRequest"].clone();
    assert_eq!(told["content"][2], json!({"kind": "file", "file": file}));
}

#[test]
fn one_text_is_a_text_and_several_are_a_list() {
    let mut sent = asked(Hook::ToolCallResult);
    for (texts, value) in [(vec!["a"], json!("a")), (vec!["a", "b"], json!(["a", "b"])), (vec![], json!([]))] {
        let outputs: Vec<_> = texts.iter().map(|text| json!({"kind": "text", "text": text})).collect();
        sent["params"]["toolCallResult"]["result"] = json!({"outputs": outputs, "isError": true});
        let content = question(&sent).event.content;
        assert_eq!(content, Content::Result { value: Cow::Owned(value), is_error: true });
    }
}
