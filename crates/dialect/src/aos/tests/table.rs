//! The table: every hook, every decision, both dialects, both forms of a change.

use super::*;

fn may_be_changed(hook: Hook) -> bool {
    !matches!(hook, Hook::A2aCancel | Hook::A2aOther)
}

#[test]
fn every_hook_reads_back_from_what_it_is_asked_with() {
    for hook in Hook::ALL {
        for dialect in DIALECTS {
            let asked = ask(&event(hook), "q-1", dialect).unwrap();
            let question = question(&asked);
            assert_eq!(question.event, event(hook), "{hook:?} {dialect:?}");
            assert_eq!((question.dialect, question.agent_named), (dialect, true), "{hook:?}");
            assert_eq!(question.id, Id::Text("q-1".to_owned()));
        }
    }
}

#[test]
fn every_decision_on_every_hook_is_understood_by_whoever_asked() {
    let policy = PolicyRef { id: "rule-1".to_owned(), version: "v3".to_owned() };
    for hook in Hook::ALL {
        for dialect in DIALECTS {
            let event = event(hook);
            let question = question(&ask(&event, "q-1", dialect).unwrap());
            let told = |response: &Response<'_>| {
                let written = write(&question, response);
                assert_eq!(written["result"]["message"], written["result"]["reason"]);
                read_response(written.to_string().as_bytes(), "q-1", &event).unwrap()
            };
            let expected = |decision: GuardianDecision, codes: &[&str]| GuardianResponse {
                decision,
                reason: Some("why".to_owned()),
                codes: codes.iter().map(|&code| code.to_owned()).collect(),
                policy: Some(policy.clone()),
            };
            let response = |kind| Response { policy: Some(&policy), ..plain(kind, "why") };
            assert_eq!(told(&response(VerdictKind::Allow)), expected(GuardianDecision::Allow, &[]));
            assert_eq!(told(&response(VerdictKind::Deny)), expected(GuardianDecision::Deny, &[]));
            assert_eq!(told(&response(VerdictKind::Ask)), expected(GuardianDecision::Deny, &["approval_required"]));
            let changed = content(hook, "[redacted]");
            for form in FORMS {
                let modify = Response { content: Some(&changed), form, ..response(VerdictKind::Modify) };
                let wanted = if may_be_changed(hook) {
                    expected(GuardianDecision::Modify(changed.clone()), &[])
                } else {
                    expected(GuardianDecision::Deny, &["modify_unsupported"])
                };
                assert_eq!(told(&modify), wanted, "{hook:?} {dialect:?} {form:?}");
            }
        }
    }
}

#[test]
fn a_whole_change_keeps_all_else_and_a_fragment_has_only_the_change() {
    for (hook, payload, member) in [
        (Hook::AgentTrigger, "/params/trigger", "content"),
        (Hook::Message(toolgate_model::guard::Role::System), "/params/message", "content"),
        (Hook::ToolCallRequest, "/params/toolCallRequest", "inputs"),
        (Hook::ToolCallResult, "/params/toolCallResult", "result"),
        (Hook::MemoryContextRetrieval, "/params", "memory"),
        (Hook::MemoryStore, "/params", "memory"),
        (Hook::KnowledgeRetrieval, "/params/knowledgeStep", "results"),
        (Hook::Mcp(toolgate_model::guard::Direction::Inbound), "/params", "message"),
        (Hook::A2aStream, "/params", "payload"),
    ] {
        let mut sent = asked(hook);
        sent["extra"] = json!(1);
        sent["params"]["citations"] = json!([]);
        sent.pointer_mut(payload).unwrap()["unknown"] = json!("kept");
        let question = question(&sent);
        let changed = content(hook, "[redacted]");
        let whole = modify(&question, &changed, ModifiedForm::Whole)["result"]["modifiedRequest"].clone();
        let fragment = modify(&question, &changed, ModifiedForm::Fragment)["result"]["modifiedRequest"].clone();
        assert_eq!(fragment.as_object().unwrap().keys().collect::<Vec<_>>(), [member], "{hook:?}");
        let mut expected = sent.clone();
        expected.pointer_mut(payload).unwrap()[member] = fragment[member].clone();
        assert_eq!(whole, expected, "{hook:?}");
        assert_ne!(whole, sent);
    }
}

#[test]
fn a_change_that_cannot_be_told_is_a_no() {
    let q = question(&asked(Hook::ToolCallRequest));
    let wrong_kind = Content::Memory(Vec::new());
    let denied = |response: &Response<'_>, q: &HookQuestion| {
        let result = write(q, response)["result"].clone();
        assert_eq!(result["decision"], "deny", "{result}");
        assert_eq!(result["reasonCode"], json!(["modify_unsupported"]));
        assert_eq!(result.get("modifiedRequest"), None);
    };
    denied(&Response { content: Some(&wrong_kind), ..plain(VerdictKind::Modify, "why") }, &q);
    denied(&Response { content: Some(&wrong_kind), ..plain(VerdictKind::Allow, "why") }, &q);
    denied(&plain(VerdictKind::Modify, "why"), &q);
    let get = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tasks/pushNotificationConfig/get", "params": {"payload": {"id": 3}},
    });
    let changed = message(json!({"id": 3, "params": 1}));
    denied(&Response { content: Some(&changed), ..plain(VerdictKind::Modify, "why") }, &question(&get));
    let other_tool = message(json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "other", "arguments": {}},
    }));
    let mcp = question(&asked(Hook::Mcp(toolgate_model::guard::Direction::Outbound)));
    denied(&Response { content: Some(&other_tool), ..plain(VerdictKind::Modify, "why") }, &mcp);
}

#[test]
fn an_allow_with_a_change_is_told_as_a_change() {
    let q = question(&asked(Hook::MemoryStore));
    let changed = content(Hook::MemoryStore, "x");
    let response = Response { content: Some(&changed), ..plain(VerdictKind::Allow, "why") };
    assert_eq!(write(&q, &response)["result"]["decision"], "modify");
}

#[test]
fn inputs_keep_their_order_and_ids() {
    let mut sent = asked(Hook::ToolCallRequest);
    sent["params"]["toolCallRequest"]["inputs"] = json!([
        {"name": "z", "id": "i-1", "value": 1}, {"name": "gone", "value": 2}, {"name": "a", "id": 3, "value": 3},
    ]);
    let q = question(&sent);
    let changed = arguments(json!({"a": 30, "new": null, "z": 1}));
    assert_eq!(
        modify(&q, &changed, ModifiedForm::Fragment)["result"]["modifiedRequest"],
        json!({"inputs": [
            {"name": "z", "id": "i-1", "value": 1}, {"name": "a", "id": 3, "value": 30}, {"name": "new", "value": null},
        ]})
    );
    sent["params"]["toolCallRequest"]["inputs"] = json!({"a": 3});
    let q = question(&sent);
    assert_eq!(q.event.content, arguments(json!({"a": 3})));
    assert_eq!(
        modify(&q, &changed, ModifiedForm::Fragment)["result"]["modifiedRequest"],
        json!({"inputs": {"a": 30, "new": null, "z": 1}})
    );
}

#[test]
fn what_is_gone_from_knowledge_is_told_as_empty() {
    let q = question(&asked(Hook::KnowledgeRetrieval));
    let nothing = Content::Knowledge { query: None, keywords: Vec::new(), results: Vec::new() };
    assert_eq!(
        modify(&q, &nothing, ModifiedForm::Fragment)["result"]["modifiedRequest"],
        json!({"query": "", "keywords": [], "results": []})
    );
}

#[test]
fn a_pong_says_who_is_there() {
    let id = Id::read(&json!(5)).unwrap();
    assert_eq!(
        write_pong(&id, now(), Some(json!({"a": 1}))),
        json!({"jsonrpc": "2.0", "id": 5, "result": {
            "status": "connected", "version": "0.1.0", "timestamp": "2026-05-10T10:35:00.250+00:00",
            "metadata": {"a": 1},
        }})
    );
    assert_eq!(write_pong(&id, now(), None)["result"].get("metadata"), None);
}

#[test]
fn an_answer_carries_codes_and_data() {
    let q = question(&asked(Hook::MemoryStore));
    let data = Some(json!({"approval_id": "apr_1"}));
    let response = Response { codes: &["approval_required", "x"], data, ..plain(VerdictKind::Ask, "ask first") };
    assert_eq!(
        write(&q, &response)["result"],
        json!({
            "decision": "deny", "message": "ask first", "reason": "ask first", "reasoning": "ask first",
            "reasonCode": ["approval_required", "x"], "data": {"approval_id": "apr_1"},
        })
    );
}
