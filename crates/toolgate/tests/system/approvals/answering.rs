//! Answers: who may give them, what they cover, and what late, repeated and unknown ones are told.

use serde_json::{Value, json};

use super::office::{Office, call, principal};
use crate::world::{World, on_both_engines, text, until};

on_both_engines! {
    also_behind_nginx:
    nothing_runs_before_the_answer_and_a_yes_runs_the_call_once,
    a_no_keeps_its_reason_and_nothing_is_sent,
    the_first_answer_wins_and_later_ones_are_told_who_it_was,
    the_same_answer_under_one_key_is_one_answer_and_another_is_a_conflict,
    an_unknown_approval_is_not_found_by_whoever_asks,
    whoever_asks_cannot_answer_and_whoever_lacks_the_permission_neither,
    an_approval_is_for_one_call_and_another_asks_again,
    a_grant_that_was_revoked_during_the_wait_is_seen_when_the_call_is_admitted,
    a_rule_that_was_tightened_during_the_wait_is_not_met_by_the_earlier_answer,
    what_a_person_is_shown_has_the_arguments_and_no_secret_and_the_log_has_neither,
    a_caller_is_told_of_its_own_approval_what_it_sent_and_reads_no_arguments,
    malformed_answers_change_nothing,
    approvals_of_others_and_of_other_tenants_are_not_seen,
}

fn nothing_runs_before_the_answer_and_a_yes_runs_the_call_once(world: &World) {
    let office = Office::open(world);
    // Given a call that waits.
    let waiting = office.asks("transfer", 10);
    let shown = office.approval(&waiting.approval);
    assert_eq!((&shown["status"], &shown["agent_id"]), (&json!("pending"), &json!("teller")));
    assert_eq!(shown["arguments"], json!({"amount": 10, "to": "ann"}));
    assert_eq!(shown["reasons"][0]["source"], "tool");
    assert_eq!(office.bank.count(), 0, "nothing was sent");
    // When somebody says yes.
    let decided = office.clerk.decides(&waiting.approval, "approve", json!({"reason": "fine"})).ok();
    assert_eq!((&decided["status"], &decided["votes"][0]["by"]), (&json!("approved"), &json!("clerk")));
    // Then it runs, once, and the log tells both.
    let approval = waiting.approval.clone();
    let answer = waiting.answer().ok();
    assert_eq!(answer["status"], "success");
    assert_eq!(answer["invocation_id"], shown["invocation_id"]);
    assert_eq!(office.bank.count(), 1);
    assert_eq!(office.events_of(&approval), ["approval.requested", "approval.granted"]);
}

fn a_no_keeps_its_reason_and_nothing_is_sent(world: &World) {
    let office = Office::open(world);
    let waiting = office.asks("transfer", 10);
    office.clerk.decides(&waiting.approval, "deny", json!({"reason": "not on a Sunday"})).ok();
    let approval = waiting.approval.clone();
    let error = waiting.answer().refused(403, "APPROVAL_DENIED");
    assert_eq!((&error["message"], &error["stage"]), (&json!("denied by clerk: not on a Sunday"), &json!("approve")));
    assert_eq!((&error["approval_id"], &error["denied_by"]), (&json!(approval), &json!("clerk")));
    assert_eq!(office.bank.count(), 0);
    assert_eq!(office.events_of(&approval), ["approval.requested", "approval.rejected"]);
}

fn the_first_answer_wins_and_later_ones_are_told_who_it_was(world: &World) {
    let office = Office::open(world);
    let waiting = office.asks("transfer", 10);
    office.clerk.decides(&waiting.approval, "deny", json!({})).ok();
    for late in ["approve", "deny"] {
        let error = office.admin.decides(&waiting.approval, late, json!({})).refused(409, "APPROVAL_DECIDED");
        assert_eq!((&error["status"], &error["decided_by"]), (&json!("denied"), &json!("clerk")));
    }
    assert_eq!(office.approval(&waiting.approval)["status"], "denied");
    waiting.answer().refused(403, "APPROVAL_DENIED");
    assert_eq!(office.bank.count(), 0);
}

fn the_same_answer_under_one_key_is_one_answer_and_another_is_a_conflict(world: &World) {
    let office = Office::open(world);
    let waiting = office.asks("transfer", 10);
    let said = json!({"reason": "ok", "idempotency_key": "k-1"});
    let first = office.clerk.decides(&waiting.approval, "approve", said.clone()).ok();
    let again = office.clerk.decides(&waiting.approval, "approve", said.clone()).ok();
    assert_eq!((&again["status"], &again["votes"]), (&first["status"], &first["votes"]));
    office.clerk.decides(&waiting.approval, "deny", said.clone()).refused(409, "IDEMPOTENCY_CONFLICT");
    // The key is the clerk's own: somebody else's answer is another one.
    office.admin.decides(&waiting.approval, "approve", said).refused(409, "APPROVAL_DECIDED");
    waiting.answer().ok();
    assert_eq!(office.bank.count(), 1);
}

fn an_unknown_approval_is_not_found_by_whoever_asks(world: &World) {
    let office = Office::open(world);
    for unknown in ["appr_01K9ZZZZZZ0000000000000000", "appr_", "nothing"] {
        office.clerk.get(&format!("/api/v1/approvals/{unknown}")).refused(404, "APPROVAL_NOT_FOUND");
        office.clerk.decides(unknown, "approve", json!({})).refused(404, "APPROVAL_NOT_FOUND");
    }
}

fn whoever_asks_cannot_answer_and_whoever_lacks_the_permission_neither(world: &World) {
    let office = Office::open(world);
    // Given an agent that may answer, and a service that calls for it.
    let patch = json!({"permissions": ["tools.invoke", "approvals.decide"]});
    office.admin.patch("/api/v1/agents/teller", &patch).ok();
    let every = ["tools.invoke", "agents.act_as", "approvals.decide"];
    let runner = principal(&office.admin, "service", "runner", &every, &[]);
    let stranger = principal(&office.admin, "user", "stranger", &["tools.invoke"], &[]);
    let waiting = office.asks("transfer", 10);
    office.agent.decides(&waiting.approval, "approve", json!({})).refused(403, "PERMISSION_DENIED");
    stranger.decides(&waiting.approval, "approve", json!({})).refused(403, "PERMISSION_DENIED");
    assert_eq!(office.approval(&waiting.approval)["status"], "pending");
    office.clerk.decides(&waiting.approval, "approve", json!({})).ok();
    waiting.answer().ok();
    // And a service that called for the agent cannot answer for itself either.
    let body = crate::world::merged(call("transfer", 11), json!({"agent_id": "teller"}));
    let caller = runner.clone();
    let thread = std::thread::spawn(move || caller.post("/api/v1/tools/invoke", &body));
    let approval = crate::world::until("a call that waits", || office.pending().into_iter().next());
    for own in [&runner, &office.agent] {
        own.decides(&approval, "approve", json!({})).refused(403, "PERMISSION_DENIED");
    }
    office.clerk.decides(&approval, "deny", json!({})).ok();
    thread.join().unwrap().refused(403, "APPROVAL_DENIED");
}

fn an_approval_is_for_one_call_and_another_asks_again(world: &World) {
    let office = Office::open(world);
    let first = office.asks("transfer", 10);
    office.clerk.decides(&first.approval, "approve", json!({"scope": "once"})).ok();
    first.answer().ok();
    // The same call again waits again.
    let second = office.asks("transfer", 10);
    office.clerk.decides(&second.approval, "deny", json!({})).ok();
    second.answer().refused(403, "APPROVAL_DENIED");
    assert_eq!(office.bank.count(), 1);
}

fn a_grant_that_was_revoked_during_the_wait_is_seen_when_the_call_is_admitted(world: &World) {
    let office = Office::open(world);
    let waiting = office.asks("transfer", 10);
    let grants = office.admin.get("/api/v1/grants?agent_id=teller").ok();
    let grant = text(&grants, "/grants/0/id");
    office.admin.delete(&format!("/api/v1/grants/{grant}")).ok();
    office.clerk.decides(&waiting.approval, "approve", json!({})).ok();
    waiting.answer().refused(403, "GRANT_REVOKED");
    assert_eq!(office.bank.count(), 0, "a person's yes is no grant");
}

fn a_rule_that_was_tightened_during_the_wait_is_not_met_by_the_earlier_answer(world: &World) {
    let office = Office::open(world);
    let waiting = office.asks("transfer", 10);
    let rule = json!({"approval": "always", "approval_rule": {"approvers": 2},
        "http": {"method": "POST", "path": "/v1/anything"}});
    let definition = json!({"service": "bank", "version": "1", "tools": {"transfer": rule}});
    office.admin.ask("PUT", "/api/v1/services/bank", Some(&definition)).ok();
    office.clerk.decides(&waiting.approval, "approve", json!({})).ok();
    waiting.answer().refused(403, "APPROVAL_REQUIRED");
    assert_eq!(office.bank.count(), 0);
}

fn what_a_person_is_shown_has_the_arguments_and_no_secret_and_the_log_has_neither(world: &World) {
    let office = Office::open(world);
    let to = |text: &str| json!({"tool": "bank.transfer", "parameters": {"amount": 1, "to": text}});
    let secret = office.asks_with(to("it is sk_live_of_the_bank_4242"));
    let shown = office.approval(&secret.approval).to_string();
    assert!(!shown.contains("sk_live_of_the_bank_4242"), "{shown}");
    office.clerk.decides(&secret.approval, "deny", json!({})).ok();
    secret.answer().refused(403, "APPROVAL_DENIED");
    let waiting = office.asks_with(to("a-mark-of-content"));
    assert_eq!(office.approval(&waiting.approval)["arguments"]["to"], "a-mark-of-content");
    office.clerk.decides(&waiting.approval, "deny", json!({})).ok();
    let approval = waiting.approval.clone();
    waiting.answer().refused(403, "APPROVAL_DENIED");
    let about = |event: &serde_json::Value| event["data"]["approval_id"] == approval.as_str();
    let logged: Vec<_> = office.admin.events("").into_iter().filter(about).collect();
    assert_eq!(logged.len(), 2);
    assert!(logged.iter().all(|event| !event.to_string().contains("a-mark-of-content")), "{logged:?}");
}

fn a_caller_is_told_of_its_own_approval_what_it_sent_and_reads_no_arguments(world: &World) {
    let office = Office::open(world);
    for guess in ["is it sk_live_of_the_bank_4242 then", "is it sk_live_of_the_bank_4243 then"] {
        let known = office.pending();
        let (agent, body) =
            (office.agent.clone(), json!({"tool": "bank.transfer", "parameters": {"amount": 1, "to": guess}}));
        let lines = [("Accept", "application/x-ndjson")];
        let asking = std::thread::spawn(move || agent.ask_with("POST", "/api/v1/tools/invoke", &lines, Some(&body)));
        let approval = until("a call that waits", || office.pending().into_iter().find(|id| !known.contains(id)));
        // What it reads is the same for every guess.
        let seen = office.agent.get(&format!("/api/v1/approvals/{approval}")).ok();
        assert_eq!((&seen["arguments"], &seen["description"]), (&Value::Null, &json!("Call: bank.transfer")));
        let listed = office.agent.get("/api/v1/approvals?status=pending").ok()["approvals"].clone();
        assert!(listed.as_array().unwrap().iter().all(|approval| approval["arguments"].is_null()), "{listed}");
        // Only the secret is hidden from who answers.
        let shown = office.approval(&approval)["arguments"]["to"].clone();
        assert!(shown == "is it [redacted] then" || shown == guess, "{shown}");
        assert!(!shown.to_string().contains("4242"), "{shown}");
        office.clerk.decides(&approval, "deny", json!({})).ok();
        let told = asking.join().unwrap().answer.text();
        let asked: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
        assert_eq!((&asked["event"], &asked["approval"]["arguments"]["to"]), (&json!("asked"), &json!(guess)));
    }
}

fn malformed_answers_change_nothing(world: &World) {
    let office = Office::open(world);
    let waiting = office.asks("transfer", 10);
    let path = format!("/api/v1/approvals/{}/decide", waiting.approval);
    for (body, code) in [
        (json!({}), "INVALID_FIELD"),
        (json!({"decision": "yes"}), "INVALID_FIELD"),
        (json!({"decision": true}), "INVALID_FIELD"),
        (json!({"decision": "approve", "force": true}), "UNKNOWN_FIELD"),
        (json!({"decision": "approve", "scope": "forever"}), "INVALID_FIELD"),
        (json!({"decision": "approve", "scope": {"always_prefix": {}}}), "INVALID_FIELD"),
        (json!({"decision": "approve", "scope": {"always": {"max_uses": 0}}}), "INVALID_FIELD"),
        (json!({"decision": "deny", "reason": "a\u{1b}[2J"}), "INVALID_FIELD"),
        (json!({"decision": "deny", "reason": "x".repeat(3000)}), "INVALID_FIELD"),
    ] {
        office.clerk.post(&path, &body).refused(400, code);
    }
    office.clerk.get(&path).refused(405, "METHOD_NOT_ALLOWED");
    assert_eq!(office.approval(&waiting.approval)["status"], "pending");
    office.clerk.decides(&waiting.approval, "approve", json!({})).ok();
    waiting.answer().ok();
}

fn approvals_of_others_and_of_other_tenants_are_not_seen(world: &World) {
    let office = Office::open(world);
    let other = world.tenant("globex");
    let peer = office.admin.registers("peer", &["tools.invoke"]);
    let waiting = office.asks("transfer", 10);
    let path = format!("/api/v1/approvals/{}", waiting.approval);
    for stranger in [&other, &peer] {
        stranger.get(&path).refused(404, "APPROVAL_NOT_FOUND");
        let list = stranger.get("/api/v1/approvals").ok();
        assert_eq!(list["approvals"], json!([]));
    }
    peer.get("/api/v1/approvals?agent_id=teller").refused(403, "PERMISSION_DENIED");
    other.decides(&waiting.approval, "approve", json!({})).refused(404, "APPROVAL_NOT_FOUND");
    // Whoever called sees its own, and cannot answer it.
    assert_eq!(office.agent.get(&path).ok()["status"], "pending");
    office.clerk.decides(&waiting.approval, "deny", json!({})).ok();
    waiting.answer().refused(403, "APPROVAL_DENIED");
}
