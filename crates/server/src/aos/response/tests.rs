//! The form of responses to hook requests.

use std::borrow::Cow;

use toolgate_model::guard::{Content, PolicyRef};
use toolgate_model::id::ApprovalId;
use toolgate_model::time::Timestamp;

use super::*;

fn asked(method: &str, params: Value) -> aos::HookQuestion {
    let body = json!({"jsonrpc": "2.0", "id": "q-1", "method": method, "params": params});
    match aos::read(body.to_string().as_bytes(), Timestamp::EPOCH).unwrap() {
        aos::Incoming::Single(aos::Message::Hook(asked)) => *asked,
        other => panic!("{other:?}"),
    }
}

fn tool_call() -> aos::HookQuestion {
    asked(
        "steps/toolCallRequest",
        json!({
            "toolCallRequest": {"executionId": "e", "toolId": "mail.send", "inputs": [{"name": "to", "value": "a@b"}]},
            "context": {"agent": {"id": "support"}}
        }),
    )
}

fn said(kind: VerdictKind) -> HookResponse {
    HookResponse {
        kind,
        reason: "because".to_owned(),
        code: None,
        policy: None,
        content: None,
        approval: None,
        invocation: None,
    }
}

#[test]
fn an_allow_says_so_and_nothing_else_than_what_it_rests_on() {
    let response = hook_response(&tool_call(), Ok(said(VerdictKind::Allow)), ModifiedForm::Whole);
    assert_eq!((&response["id"], &response["result"]["decision"]), (&json!("q-1"), &json!("allow")));
    assert_eq!(response["result"]["data"], json!({"effective": "allow"}));
    assert_eq!(decision(&response), "allow");
}

#[test]
fn a_denial_names_its_code_and_its_rule() {
    let policy = PolicyRef { id: "no-mail".to_owned(), version: "3".to_owned() };
    let denied =
        HookResponse { code: Some("policy_denied".to_owned()), policy: Some(policy), ..said(VerdictKind::Deny) };
    let result = hook_response(&tool_call(), Ok(denied), ModifiedForm::Whole)["result"].clone();
    assert_eq!((&result["decision"], &result["reasonCode"]), (&json!("deny"), &json!(["policy_denied"])));
    assert_eq!((&result["policyId"], &result["policyVersion"]), (&json!("no-mail"), &json!("3")));
    assert_eq!((&result["message"], &result["reason"]), (&json!("because"), &json!("because")));
}

#[test]
fn a_question_that_waits_for_a_person_is_a_deny_with_the_approval() {
    let approval = ApprovalId::parse("appr_01K9ZZZZZZ0000000000000000").unwrap();
    let waits = HookResponse {
        code: Some("approval_required".to_owned()),
        approval: Some(approval),
        ..said(VerdictKind::Deny)
    };
    let result = hook_response(&tool_call(), Ok(waits), ModifiedForm::Whole)["result"].clone();
    assert_eq!((&result["decision"], &result["reasonCode"]), (&json!("deny"), &json!(["approval_required"])));
    assert_eq!(result["data"], json!({"effective": "ask", "approvalId": approval}));
}

#[test]
fn a_change_is_told_in_the_form_that_was_agreed_on() {
    let changed = || {
        let arguments = Map::from_iter([("to".to_owned(), json!("[REDACTED]"))]);
        Ok(HookResponse { content: Some(Content::Arguments(Cow::Owned(arguments))), ..said(VerdictKind::Modify) })
    };
    let whole = hook_response(&tool_call(), changed(), ModifiedForm::Whole);
    let request = &whole["result"]["modifiedRequest"];
    assert_eq!(request["params"]["toolCallRequest"]["inputs"], json!([{"name": "to", "value": "[REDACTED]"}]));
    let fragment = hook_response(&tool_call(), changed(), ModifiedForm::Fragment);
    assert_eq!(fragment["result"]["modifiedRequest"], json!({"inputs": [{"name": "to", "value": "[REDACTED]"}]}));
    assert_eq!(fragment["result"]["data"], json!({"effective": "modify"}));
}

#[test]
fn a_change_that_cannot_be_told_is_counted_and_told_as_a_denial() {
    let asked = asked("tasks/cancel", json!({"payload": {"id": 1, "method": "tasks/cancel", "params": {"id": "t"}}}));
    let content =
        Content::Message(Cow::Owned(json!({"id": 1, "method": "tasks/cancel", "params": {"id": "t", "x": 1}})));
    let changed = HookResponse { content: Some(content), ..said(VerdictKind::Modify) };
    let response = hook_response(&asked, Ok(changed), ModifiedForm::Whole);
    assert_eq!((decision(&response), &response["result"]["data"]["effective"]), ("deny", &json!("deny")));
}

#[test]
fn what_could_not_be_decided_is_a_denial_and_no_error() {
    let refusal = Refusal::new(Code::LedgerUnavailable, "the ledger does not answer");
    let response = hook_response(&tool_call(), Err(refusal), ModifiedForm::Whole);
    assert!(response.get("error").is_none());
    let result = &response["result"];
    assert_eq!((&result["decision"], &result["reasonCode"]), (&json!("deny"), &json!(["ledger_unavailable"])));
}
