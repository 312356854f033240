//! Every point at which AOS contradicts itself: all forms are read, one is written.

use toolgate_model::guard::Direction;

use super::*;

#[test]
fn a_message_of_mcp_may_be_params_itself_and_name_no_agent() {
    let inner = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "get_weather", "arguments": {"city": "Barcelona"}},
    });
    let sent = json!({"jsonrpc": "2.0", "id": 70, "method": "protocols/MCP", "params": inner});
    let q = question(&sent);
    assert_eq!(q.event.hook, Hook::Mcp(Direction::Outbound));
    assert_eq!((q.event.method.as_deref(), q.event.tool.as_deref()), (Some("tools/call"), Some("get_weather")));
    assert_eq!(q.event.content, message(inner.clone()));
    assert_eq!((q.agent_named, q.event.agent.id.as_ref(), q.dialect), (false, "", Dialect::Aos));

    let mut changed = inner.clone();
    changed["params"]["arguments"]["city"] = json!("[redacted]");
    let whole = modify(&q, &message(changed.clone()), ModifiedForm::Whole)["result"]["modifiedRequest"].clone();
    assert_eq!(whole, json!({"jsonrpc": "2.0", "id": 70, "method": "protocols/MCP", "params": changed}));
    let fragment = modify(&q, &message(changed.clone()), ModifiedForm::Fragment)["result"]["modifiedRequest"].clone();
    assert_eq!(fragment, json!({"message": changed}));
}

#[test]
fn a_bare_message_of_mcp_is_told_from_what_wraps_it() {
    let sent = json!({"jsonrpc": "2.0", "id": 70, "method": "protocols/MCP", "params": {
        "jsonrpc": "2.0", "id": 1, "result": {"secret": 1},
        "reasoning": "so", "direction": "outbound", "context": {"agent": {"id": "a"}},
    }});
    let q = question(&sent);
    assert_eq!(q.event.hook, Hook::Mcp(Direction::Outbound));
    assert_eq!((q.event.agent.id.as_ref(), q.event.reasoning.as_deref()), ("a", Some("so")));
    assert_eq!(q.event.content, message(json!({"jsonrpc": "2.0", "id": 1, "result": {"secret": 1}})));
    let changed = message(json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let mut expected = sent.clone();
    expected["params"]["result"] = json!({});
    assert_eq!(modify(&q, &changed, ModifiedForm::Whole)["result"]["modifiedRequest"], expected);
    let mut twice = sent;
    twice["params"]["message"] = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    assert_eq!(invalid_member(&twice), "params.message");
}

#[test]
fn a_result_may_stand_in_params_directly() {
    let usual = asked(Hook::ToolCallResult);
    let mut flat = usual.clone();
    flat["params"] = without(&usual["params"], &["toolCallResult"]);
    for (name, value) in usual["params"]["toolCallResult"].as_object().unwrap() {
        flat["params"][name] = value.clone();
    }
    let q = question(&flat);
    assert_eq!(q.event, event(Hook::ToolCallResult));
    let whole = modify(&q, &content(Hook::ToolCallResult, "x"), ModifiedForm::Whole);
    let mut expected = flat.clone();
    expected["params"]["result"]["outputs"][1]["text"] = json!("x");
    assert_eq!(whole["result"]["modifiedRequest"], expected);

    flat["params"]["toolCallResult"] = usual["params"]["toolCallResult"].clone();
    assert_eq!(invalid_member(&flat), "params.result");
}

#[test]
fn citations_may_have_either_name_or_none() {
    for name in ["citation", "citations", "none"] {
        let mut sent = asked(Hook::Message(toolgate_model::guard::Role::Agent));
        sent["params"][name] = json!([{"kind": "site", "url": "https://example.org"}]);
        assert_eq!(question(&sent).event, event(Hook::Message(toolgate_model::guard::Role::Agent)));
    }
}

#[test]
fn the_agents_address_and_instructions_tell_the_dialect_and_may_be_missing() {
    for (member, dialect) in [("url", Dialect::Aos), ("instructions", Dialect::Aos), ("version", Dialect::Joch)] {
        let mut sent = asked(Hook::ToolCallRequest);
        sent["params"]["context"]["agent"][member] = json!("x");
        assert_eq!(question(&sent).dialect, dialect, "{member}");
    }
}

#[test]
fn a_payload_of_a2a_may_stand_beside_the_id() {
    let usual = asked(Hook::A2aSend);
    let mut beside = without(&usual, &["params"]);
    for (name, value) in usual["params"].as_object().unwrap() {
        beside[name] = value.clone();
    }
    let q = question(&beside);
    assert_eq!(q.event, event(Hook::A2aSend));
    let mut expected = beside.clone();
    expected["payload"]["params"]["note"] = json!("x");
    assert_eq!(modify(&q, &content(Hook::A2aSend, "x"), ModifiedForm::Whole)["result"]["modifiedRequest"], expected);
    beside["params"] = usual["params"].clone();
    assert_eq!(invalid_member(&beside), "payload");
}

#[test]
fn the_agent_of_a2a_is_the_side_that_is_told_in_full() {
    let full =
        json!({"name": "Cook", "url": "https://cook.example", "instructions": "cook", "provider": {"name": "x"}});
    let mut named = full.clone();
    named["id"] = json!("cook");
    let peer = json!({"name": "Baker", "url": "https://baker.example", "version": "1"});
    let mut named_peer = peer.clone();
    named_peer["id"] = json!("baker");
    for (from, to, name, id) in [
        (&full, &peer, "Cook", ""),
        (&peer, &named, "Cook", "cook"),
        (&named_peer, &named, "Cook", "cook"),
        (&named, &named_peer, "Cook", "cook"),
        (&peer, &named_peer, "Baker", "baker"),
    ] {
        let sent = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {
            "payload": {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}},
            "context": {"from": {"agent": from, "role": "client"}, "to": {"agent": to, "role": "server"}},
        }});
        let q = question(&sent);
        assert_eq!((q.event.agent.name.as_deref(), q.event.agent.id.as_ref()), (Some(name), id));
        assert_eq!(q.agent_named, !id.is_empty());
    }
}

#[test]
fn a_ping_may_have_its_time_anywhere() {
    for ping in [
        json!({"jsonrpc": "2.0", "id": "p", "method": "ping", "timestamp": "2026-05-10T10:34:55Z"}),
        json!({"jsonrpc": "2.0", "id": "p", "method": "ping", "params": {"timestamp": "2026-05-10T10:34:55Z"}}),
        json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}),
    ] {
        assert!(matches!(read_one(&ping), Message::Ping(Ping { id: Id::Text(id) }) if id == "p"));
    }
}

#[test]
fn the_direction_of_mcp_is_told_by_who_may_send_it() {
    for (method, direction) in [
        ("initialize", Direction::Outbound),
        ("notifications/initialized", Direction::Outbound),
        ("notifications/cancelled", Direction::Outbound),
        ("notifications/roots/list_changed", Direction::Outbound),
        ("resources/read", Direction::Outbound),
        ("ping", Direction::Outbound),
        ("sampling/createMessage", Direction::Inbound),
        ("elicitation/create", Direction::Inbound),
        ("roots/list", Direction::Inbound),
        ("notifications/tools/list_changed", Direction::Inbound),
        ("notifications/resources/updated", Direction::Inbound),
        ("notifications/message", Direction::Inbound),
        ("notifications/progress", Direction::Inbound),
    ] {
        let mcp = json!({"jsonrpc": "2.0", "method": method});
        let mut sent = json!({"jsonrpc": "2.0", "id": 1, "method": "protocols/MCP", "params": {"message": mcp}});
        assert_eq!(question(&sent).event.hook, Hook::Mcp(direction), "{method}");
        for (said, direction) in [("outbound", Direction::Outbound), ("inbound", Direction::Inbound)] {
            sent["params"]["direction"] = json!(said);
            assert_eq!(question(&sent).event.hook, Hook::Mcp(direction), "{method}");
        }
    }
    for response in
        [json!({"jsonrpc": "2.0", "id": 1, "result": null}), json!({"jsonrpc": "2.0", "error": {"code": 1}})]
    {
        let sent = json!({"jsonrpc": "2.0", "id": 1, "method": "protocols/MCP", "params": {"message": response}});
        assert_eq!(question(&sent).event.hook, Hook::Mcp(Direction::Inbound));
    }
}

#[test]
fn every_name_of_a2a_has_its_hook() {
    for (hook, changeable, names) in [
        (Hook::A2aSend, true, &["message/send", "SendMessage", "send_message"][..]),
        (Hook::A2aStream, true, &["message/stream", "SendStreamingMessage", "stream_message"]),
        (Hook::A2aCancel, false, &["tasks/cancel", "CancelTask", "cancel_request"]),
        (Hook::A2aGetTask, true, &["tasks/get", "GetTask", "get_task"]),
        (Hook::A2aNotificationConfig, true, &["tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig"]),
        (
            Hook::A2aNotificationConfig,
            false,
            &[
                "tasks/pushNotificationConfig/get",
                "GetTaskPushNotificationConfig",
                "tasks/pushNotificationConfig/list",
                "ListTaskPushNotificationConfigs",
                "tasks/pushNotificationConfig/delete",
                "DeleteTaskPushNotificationConfig",
                "tasks/resubscribe",
                "SubscribeToTask",
            ],
        ),
        (
            Hook::A2aOther,
            false,
            &["tasks/list", "ListTasks", "agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"],
        ),
    ] {
        for name in names {
            let sent = json!({"jsonrpc": "2.0", "id": 1, "method": name, "params": {
                "payload": {"jsonrpc": "2.0", "id": 2, "method": name, "params": {}}, "context": {"agent": {"id": "a"}},
            }});
            let q = question(&sent);
            assert_eq!(q.event.hook, hook, "{name}");
            let changed = message(json!({"jsonrpc": "2.0", "id": 2, "method": name, "params": {"x": 1}}));
            let decision = modify(&q, &changed, ModifiedForm::Whole)["result"]["decision"].clone();
            assert_eq!(decision, if changeable { "modify" } else { "deny" }, "{name}");
            let again = ask(&q.event, "q-1", Dialect::Aos).unwrap();
            assert_eq!(question(&again).event.method, q.event.method, "{name}");
            assert!(name.contains('_') || again["method"] == **name);
        }
    }
}
