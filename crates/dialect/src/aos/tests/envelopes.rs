//! Bad envelopes: each gets the right error of JSON-RPC.

use toolgate_model::guard::FailureClass;

use super::*;

#[test]
fn bad_envelopes_get_the_error_of_the_specification() {
    let hook = asked(Hook::MemoryStore);
    let with = |name: &str, value: Value| {
        let mut changed = hook.clone();
        changed[name] = value;
        changed
    };
    let text = Some(Id::Text("q-1".to_owned()));
    for (sent, id, code) in [
        (json!(1), None, -32600),
        (json!("text"), None, -32600),
        (json!({"foo": "boo"}), None, -32600),
        (without(&hook, &["id"]), None, -32600),
        (with("id", json!(null)), None, -32600),
        (with("id", json!(1.5)), None, -32600),
        (with("id", json!(1.0)), None, -32600),
        (with("id", json!({})), None, -32600),
        (with("id", json!(true)), None, -32600),
        (with("jsonrpc", json!("1.0")), text.clone(), -32600),
        (with("jsonrpc", json!(2.0)), text.clone(), -32600),
        (without(&hook, &["jsonrpc"]), text.clone(), -32600),
        (without(&hook, &["method"]), text.clone(), -32600),
        (with("method", json!(7)), text.clone(), -32600),
        (with("method", json!("steps/unknown")), text.clone(), -32601),
        (with("method", json!("Steps/MemoryStore")), text.clone(), -32601),
        (with("params", json!([1])), text.clone(), -32602),
        (without(&hook, &["params"]), text.clone(), -32602),
    ] {
        let (found, error) = refused(&sent);
        assert_eq!((found.clone(), error.code), (id, code), "{sent}");
        let written = write_error(found.as_ref(), &error);
        assert_eq!(written["error"]["code"], code);
        assert_eq!(written["id"], found.map_or(Value::Null, |id| id.to_value()));
        assert_eq!(written.get("result"), None);
    }
}

#[test]
fn ids_come_back_as_they_came() {
    for id in [json!(""), json!("a"), json!(0), json!(-7), json!(u64::MAX)] {
        let mut sent = asked(Hook::MemoryStore);
        sent["id"] = id.clone();
        assert_eq!(write(&question(&sent), &plain(VerdictKind::Allow, "fine"))["id"], id);
    }
}

#[test]
fn what_is_no_json_is_a_parse_error() {
    for text in ["", "{", "nonsense", r#"{"a": 1, "a": 2}"#, "{} {}", "\u{feff}{}"] {
        assert_eq!(read(text.as_bytes(), now()).unwrap_err().code, -32700, "{text}");
    }
    assert_eq!(read(&[0xff], now()).unwrap_err().code, -32700);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert_eq!(read(deep.as_bytes(), now()).unwrap_err().code, -32700);
}

#[test]
fn a_batch_is_read_one_by_one_and_an_empty_one_refused() {
    assert_eq!(read(b"[]", now()).unwrap_err().code, -32600);
    let batch = json!([
        asked(Hook::MemoryStore), 1, [],
        {"jsonrpc": "2.0", "method": "ping"}, {"jsonrpc": "2.0", "method": "ping", "id": 1},
    ]);
    let Incoming::Batch(messages) = read(batch.to_string().as_bytes(), now()).unwrap() else { panic!("a batch") };
    assert!(matches!(
        messages.as_slice(),
        [
            Message::Hook(_),
            Message::Invalid { id: None, .. },
            Message::Invalid { id: None, .. },
            Message::Notification,
            Message::Ping(_)
        ]
    ));
}

#[test]
fn a_notification_is_not_answered_unless_it_is_a_hook() {
    assert!(matches!(read_one(&json!({"jsonrpc": "2.0", "method": "whatever"})), Message::Notification));
    for hook in Hook::ALL {
        let (id, error) = refused(&without(&asked(hook), &["id"]));
        assert_eq!((id, error.code), (None, -32600), "{hook:?}");
    }
}

#[test]
fn an_answer_that_is_no_decision_has_the_class_of_its_fault() {
    let event = event(Hook::ToolCallRequest);
    let allow = json!({"decision": "allow"});
    let error = |code: i64| json!({"jsonrpc": "2.0", "id": "q-1", "error": {"code": code, "message": "no"}});
    for (response, class) in [
        (json!([]), FailureClass::Malformed),
        (json!("allow"), FailureClass::Malformed),
        (json!({"id": "q-1", "result": allow}), FailureClass::Malformed),
        (json!({"jsonrpc": "1.0", "id": "q-1", "result": allow}), FailureClass::Malformed),
        (json!({"jsonrpc": "2.0", "result": allow}), FailureClass::Malformed),
        (json!({"jsonrpc": "2.0", "id": "q-1"}), FailureClass::Malformed),
        (json!({"jsonrpc": "2.0", "id": "q-1", "result": allow, "error": {"code": 1}}), FailureClass::Malformed),
        (json!({"jsonrpc": "2.0", "id": "q-1", "error": "no"}), FailureClass::Malformed),
        (json!({"jsonrpc": "2.0", "id": "q-2", "result": allow}), FailureClass::IdMismatch),
        (json!({"jsonrpc": "2.0", "id": null, "result": allow}), FailureClass::IdMismatch),
        (json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}), FailureClass::IdMismatch),
        (json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700}}), FailureClass::GuardianError),
        (json!({"jsonrpc": "2.0", "id": "q-1", "error": {}}), FailureClass::GuardianError),
        (error(-32603), FailureClass::GuardianError),
        (error(-32000), FailureClass::GuardianError),
        (error(-32008), FailureClass::GuardianError),
        (error(-32001), FailureClass::Refused),
        (error(-32007), FailureClass::Refused),
        (json!({"jsonrpc": "2.0", "id": "q-1", "result": "allow"}), FailureClass::UnknownDecision),
    ] {
        assert_eq!(read_response(response.to_string().as_bytes(), "q-1", &event), Err(class), "{response}");
    }
    assert_eq!(read_response(b"<html>", "q-1", &event), Err(FailureClass::Malformed));
    let twice = br#"{"jsonrpc":"2.0","id":"q-1","result":{"decision":"deny","decision":"allow"}}"#;
    assert_eq!(read_response(twice, "q-1", &event), Err(FailureClass::Malformed));
    for (result, class) in [
        (json!({}), FailureClass::UnknownDecision),
        (json!({"decision": "Allow"}), FailureClass::UnknownDecision),
        (json!({"decision": "allow "}), FailureClass::UnknownDecision),
        (json!({"decision": "ask"}), FailureClass::UnknownDecision),
        (json!({"decision": true}), FailureClass::UnknownDecision),
        (json!({"decision": "modify"}), FailureClass::IncompleteDecision),
        (json!({"decision": "modify", "modifiedRequest": null}), FailureClass::IncompleteDecision),
    ] {
        assert_eq!(given(result.clone(), &event), Err(class), "{result}");
    }
}

#[test]
fn what_typed_programs_write_as_null_is_absent() {
    let event = event(Hook::ToolCallRequest);
    let response = json!({"jsonrpc": "2.0", "id": "q-1", "error": null, "result": {
        "decision": "allow", "message": null, "reasonCode": null, "policyId": null, "modifiedRequest": null,
    }});
    let given = read_response(response.to_string().as_bytes(), "q-1", &event).unwrap();
    assert_eq!(
        given,
        GuardianResponse { decision: GuardianDecision::Allow, reason: None, codes: Vec::new(), policy: None }
    );
}

#[test]
fn reasons_are_cleaned_cut_and_read_in_order() {
    let event = event(Hook::ToolCallRequest);
    let reason = |result: Value| given(result, &event).unwrap().reason;
    let all = json!({"decision": "deny", "reason": "a", "message": "b", "reasoning": "c"});
    assert_eq!(reason(all.clone()).as_deref(), Some("a"));
    assert_eq!(reason(without(&all, &["reason"])).as_deref(), Some("b"));
    assert_eq!(reason(without(&all, &["reason", "message"])).as_deref(), Some("c"));
    assert_eq!(reason(json!({"decision": "deny", "reason": " \u{7} ", "message": "b"})).as_deref(), Some("b"));
    let tricky = json!({"decision": "deny", "reason": "red\u{1b}[31m\ntext\u{0}"});
    assert_eq!(reason(tricky).as_deref(), Some("red[31m text"));
    let long = reason(json!({"decision": "deny", "reason": "ä".repeat(5000)})).unwrap();
    assert_eq!(long.chars().count(), 2000);
    let named =
        given(json!({"decision": "deny", "reasonCode": "one", "policyId": "p\u{0}", "policyVersion": 3}), &event);
    let named = named.unwrap();
    assert_eq!(named.codes, ["one"]);
    assert_eq!(named.policy, Some(PolicyRef { id: "p".to_owned(), version: "3".to_owned() }));
}
