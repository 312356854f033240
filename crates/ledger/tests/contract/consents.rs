//! Consent: approvals are consumed with the admission, once and for this call, and not at all if the call is not
//! admitted.

use serde_json::json;
use toolgate_gate::ports::ledger::{Admission, Admit};
use toolgate_gate::refusal::Code;
use toolgate_model::approval::{Approval, ApprovalStatus, BoundAction, StandingApproval};
use toolgate_model::grant::Grant;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

use super::support::approvals::{
    always, approve, ask, by_answer, by_standing, deny, end, everywhere, question, revoke, say, standing, standing_now,
};
use super::support::calls::{Caller, another, keyed, refusal_of};
use super::support::replicas::{Replicas, admitted, recorded};

contract!(
    an_answer_lets_one_call_pass,
    of_64_calls_by_one_answer_one_is_admitted,
    an_answer_that_is_no_yes_lets_nothing_pass,
    an_answer_lets_no_other_call_pass,
    an_answer_of_another_tenant_lets_nothing_pass,
    a_standing_approval_counts_what_it_lets_pass,
    a_call_may_need_several_standing_approvals_and_counts_on_each_once,
    of_200_calls_by_a_standing_approval_as_many_as_it_allows_are_admitted,
    a_standing_approval_that_was_taken_back_lets_nothing_pass_at_any_replica,
    a_standing_approval_ends_by_the_clock,
    a_standing_approval_lets_no_other_agent_or_tool_pass,
    a_standing_approval_lets_no_other_action_pass,
    a_call_that_is_not_admitted_takes_nothing,
    a_call_that_is_sent_again_takes_nothing,
    a_call_whose_consent_does_not_hold_takes_no_rate_and_no_key,
    calls_that_need_nobody_are_admitted_beside_one_that_is_refused,
);

/// A granted approval.
async fn approved(tenant: &TestTenant) -> Approval {
    let asked = ask(tenant, question(tenant)).await;
    approve(tenant, &asked, "alice").await.unwrap()
}

async fn call_by_answer(caller: &Caller, grant: &Grant, answer: &Approval) -> Admit {
    by_answer(caller.call(grant).await, answer)
}

/// The numbers of uses of a tenant's standing approvals, from the log.
async fn uses(tenant: &TestTenant) -> Vec<u64> {
    let events = tenant.events_of("standing_approval.used").await;
    events.iter().map(|event| event["data"]["used"].as_u64().unwrap()).collect()
}

async fn an_answer_lets_one_call_pass(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let answer = approved(&caller.tenant).await;
    assert_eq!(caller.send(call_by_answer(&caller, &grant, &answer).await).await, Admission::Admitted);
    let again = caller.send(call_by_answer(&caller, &grant, &answer).await).await;
    let refusal = refusal_of(again, Code::ApprovalRequired);
    assert!(refusal.reason().contains("another call has used it"), "{refusal}");
    assert_eq!(caller.records().await.len(), 1);
}

async fn of_64_calls_by_one_answer_one_is_admitted(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let here = replicas.here();
    let call = here.call(&here.grant(None).await).await;
    for _ in 0..4 {
        let answer = approved(&here.tenant).await;
        let calls = (0..64).map(|_| by_answer(another(&call), &answer)).collect();

        let outcomes = replicas.send(calls).await;

        assert_eq!(admitted(&outcomes).len(), 1);
        for (_, outcome) in outcomes.into_iter().filter(|(_, outcome)| *outcome != Admission::Admitted) {
            refusal_of(outcome, Code::ApprovalRequired);
        }
    }
    assert_eq!(recorded(here).await.len(), 4);
}

async fn an_answer_that_is_no_yes_lets_nothing_pass(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let tenant = &caller.tenant;
    let grant = caller.grant(None).await;
    let waiting = ask(tenant, question(tenant)).await;
    let denied = deny(tenant, &ask(tenant, question(tenant)).await, "alice").await.unwrap();
    let cancelled = end(tenant, &ask(tenant, question(tenant)).await, ApprovalStatus::Cancelled).await.unwrap();
    let never_asked = question(tenant);
    for answer in [waiting, denied, cancelled, never_asked] {
        let outcome = caller.send(call_by_answer(&caller, &grant, &answer).await).await;
        refusal_of(outcome, Code::ApprovalRequired);
    }
    assert_eq!(caller.records().await, []);
}

async fn an_answer_lets_no_other_call_pass(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let answer = approved(&caller.tenant).await;
    for digest in [None, Some("d2".repeat(32))] {
        let call = Admit { approval_digest: digest, ..call_by_answer(&caller, &grant, &answer).await };
        let refusal = refusal_of(caller.send(call).await, Code::ApprovalRequired);
        assert!(refusal.reason().contains("for another call"), "{refusal}");
    }
    let call = call_by_answer(&caller, &grant, &answer).await;
    assert_eq!(caller.send(call).await, Admission::Admitted, "it was not taken");
}

async fn an_answer_of_another_tenant_lets_nothing_pass(fixture: &LedgerFixture) {
    let (caller, other) = (Caller::new(fixture).await, fixture.tenant().await);
    let grant = caller.grant(None).await;
    let answer = approved(&other).await;
    refusal_of(caller.send(call_by_answer(&caller, &grant, &answer).await).await, Code::ApprovalRequired);
    let made = standing(&other, |_| ()).await;
    let call = by_standing(caller.call(&grant).await, &[&made]);
    refusal_of(caller.send(call).await, Code::ApprovalRequired);
    assert_eq!(standing_now(&other, &made).await, made);
}

async fn a_standing_approval_counts_what_it_lets_pass(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let made = standing(&caller.tenant, |_| ()).await;
    for used in 1..=3 {
        caller.tenant.wait(1);
        let call = by_standing(caller.call(&grant).await, &[&made]);
        assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
        let stands = standing_now(&caller.tenant, &made).await;
        assert_eq!((stands.used, stands.last_used_at), (used, Some(caller.tenant.now())));
        let event = caller.tenant.events_of("standing_approval.used").await.pop().unwrap();
        assert_eq!((&event["agent_id"], &event["run_id"]), (&json!("billing"), &json!(call.invocation.run_id())));
        let data = &event["data"];
        assert_eq!(data["standing_approval_id"], json!(made.id));
        assert_eq!((&data["invocation_id"], &data["used"]), (&json!(call.invocation.id), &json!(used)));
    }
}

async fn a_call_may_need_several_standing_approvals_and_counts_on_each_once(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let one = standing(&caller.tenant, |_| ()).await;
    let other = standing(&caller.tenant, |standing| standing.max_uses = Some(1)).await;
    let call = async || by_standing(caller.call(&grant).await, &[&one, &other, &one]);
    assert_eq!(caller.send(call().await).await, Admission::Admitted);
    refusal_of(caller.send(call().await).await, Code::ApprovalRequired);
    for made in [&one, &other] {
        assert_eq!(standing_now(&caller.tenant, made).await.used, 1, "all of them are needed");
    }
    assert_eq!(uses(&caller.tenant).await, [1, 1]);
}

async fn of_200_calls_by_a_standing_approval_as_many_as_it_allows_are_admitted(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let here = replicas.here();
    let call = here.call(&here.grant(None).await).await;
    let made = standing(&here.tenant, |standing| standing.max_uses = Some(17)).await;
    let calls = (0..200).map(|_| by_standing(another(&call), &[&made])).collect();

    let outcomes = replicas.send(calls).await;

    assert_eq!(admitted(&outcomes).len(), 17);
    assert_eq!(recorded(here).await, admitted(&outcomes));
    assert_eq!(standing_now(&here.tenant, &made).await.used, 17);
    let mut told = uses(&here.tenant).await;
    told.sort_unstable();
    assert_eq!(told, (1..=17).collect::<Vec<_>>());
}

async fn a_standing_approval_that_was_taken_back_lets_nothing_pass_at_any_replica(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let here = replicas.here();
    let call = here.call(&here.grant(None).await).await;
    let made = standing(&here.tenant, |_| ()).await;
    for turn in 0..2 {
        let outcome = replicas.turn(turn).send(by_standing(another(&call), &[&made])).await;
        assert_eq!(outcome, Admission::Admitted);
    }
    revoke(&here.tenant, made.id).await.unwrap();
    for turn in 0..2 {
        let outcome = replicas.turn(turn).send(by_standing(another(&call), &[&made])).await;
        let refusal = refusal_of(outcome, Code::ApprovalRequired);
        assert!(refusal.reason().contains("revoked") && refusal.reason().ends_with("call again"), "{refusal}");
    }
    assert_eq!(standing_now(&here.tenant, &made).await.used, 2);
}

async fn a_standing_approval_ends_by_the_clock(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let end = caller.tenant.later(10);
    let made = standing(&caller.tenant, |standing| standing.expires_at = Some(end)).await;
    caller.tenant.clock.advance(std::time::Duration::from_millis(9_999));
    let call = by_standing(caller.call(&grant).await, &[&made]);
    assert_eq!(caller.send(call).await, Admission::Admitted);
    caller.tenant.clock.advance(std::time::Duration::from_millis(1));
    let call = by_standing(caller.call(&grant).await, &[&made]);
    refusal_of(caller.send(call).await, Code::ApprovalRequired);
}

async fn a_standing_approval_lets_no_other_agent_or_tool_pass(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let made = standing(&caller.tenant, |_| ()).await;
    let mut of_another_tool = by_standing(caller.call(&grant).await, &[&made]);
    of_another_tool.invocation.tool = "refunds.create".into();
    refusal_of(caller.send(of_another_tool).await, Code::ApprovalRequired);
    let leaf = caller.delegate(&grant, None).await;
    assert_eq!(leaf.agent, principal("worker"));
    let of_another_agent = by_standing(caller.call(&leaf).await, &[&made]);
    refusal_of(caller.send(of_another_agent).await, Code::ApprovalRequired);
    assert_eq!(standing_now(&caller.tenant, &made).await.used, 0);
}

async fn a_standing_approval_lets_no_other_action_pass(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let credential = caller.held_grant(grant.id).await.credential.id;
    let action = |digest: &str| BoundAction {
        digest: digest.to_owned(),
        credential,
        label: "live key".to_owned(),
        method: "POST".to_owned(),
        host: "api.example.com".to_owned(),
    };
    let asked = ask(&caller.tenant, Approval { action: Some(action("one")), ..question(&caller.tenant) }).await;
    let given = everywhere(&caller.tenant, &asked);
    // The request does not matter: it is for the action that was shown.
    let wished = StandingApproval { action: Some(action("two")), ..given.clone() };
    say(&caller.tenant, always(&caller.tenant, &asked, wished)).await.unwrap();
    let call = by_standing(caller.call(&grant).await, &[&given]);
    for other in [None, Some(action("two"))] {
        let refusal = refusal_of(caller.send(Admit { action: other, ..another(&call) }).await, Code::ApprovalRequired);
        assert!(refusal.reason().contains("another credential"), "{refusal}");
    }
    assert_eq!(caller.send(Admit { action: Some(action("one")), ..call }).await, Admission::Admitted);
}

async fn a_call_that_is_not_admitted_takes_nothing(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(1).await;
    caller.running(&grant).await;
    let answer = approved(&caller.tenant).await;
    let made = standing(&caller.tenant, |_| ()).await;
    let mut call = call_by_answer(&caller, &grant, &answer).await;
    call.consent.standing = vec![made.id];
    refusal_of(caller.send(call.clone()).await, Code::GrantRateLimited);
    let outdated = Admit { actor_revision: call.actor_revision + 1, generation: 0, ..another(&call) };
    assert_eq!(caller.send(outdated).await, Admission::Stale);

    assert_eq!(standing_now(&caller.tenant, &made).await, made);
    assert_eq!(uses(&caller.tenant).await.len(), 0);
    caller.tenant.wait(3600);
    let mut call = call_by_answer(&caller, &grant, &answer).await;
    call.consent.standing = vec![made.id];
    assert_eq!(caller.send(call).await, Admission::Admitted, "both are still there for it");
}

async fn a_call_that_is_sent_again_takes_nothing(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let made = standing(&caller.tenant, |_| ()).await;
    let call = by_standing(caller.call_keyed(&grant, "order-1", "d1").await, &[&made]);
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    refusal_of(caller.send(another(&call)).await, Code::IdempotencyInProgress);
    caller.settle(&call, "{}").await;
    let Admission::Replayed(answer) = caller.send(another(&call)).await else { panic!("not replayed") };
    assert_eq!(answer.invocation, call.invocation.id);
    assert_eq!(standing_now(&caller.tenant, &made).await.used, 1);
    assert_eq!(uses(&caller.tenant).await, [1]);
}

async fn a_call_whose_consent_does_not_hold_takes_no_rate_and_no_key(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(1).await;
    let made = standing(&caller.tenant, |_| ()).await;
    revoke(&caller.tenant, made.id).await.unwrap();
    let call = by_standing(caller.call_keyed(&grant, "order-1", "d1").await, &[&made]);
    refusal_of(caller.send(call.clone()).await, Code::ApprovalRequired);

    let answer = approved(&caller.tenant).await;
    let call = keyed(call_by_answer(&caller, &grant, &answer).await, "order-1", "d1");
    assert_eq!(caller.send(call).await, Admission::Admitted);
}

async fn calls_that_need_nobody_are_admitted_beside_one_that_is_refused(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let here = replicas.here();
    let call = here.call(&here.grant(None).await).await;
    let never_asked = question(&here.tenant);
    let calls: Vec<_> = (0..40)
        .map(|number| match number % 4 {
            0 => by_answer(another(&call), &never_asked),
            _ => another(&call),
        })
        .collect();
    let free: std::collections::BTreeSet<_> =
        calls.iter().filter(|call| call.consent.is_empty()).map(|call| call.invocation.id).collect();

    let outcomes = replicas.send(calls).await;

    assert_eq!(admitted(&outcomes), free);
    assert_eq!(recorded(here).await, free);
}
