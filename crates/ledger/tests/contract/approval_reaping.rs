//! Reaping: expired approvals end, those of stopped processes are orphaned, waiters are notified once, and arguments
//! are not kept for ever.

use std::time::Duration;

use serde_json::json;
use toolgate_gate::ports::ledger::{Heartbeat, RecordDenial};
use toolgate_gate::refusal::Code;
use toolgate_model::approval::{Approval, ApprovalStatus, Decision, TIMED_OUT};
use toolgate_model::hook::ToolReturned;
use toolgate_model::id::ProcessId;
use toolgate_model::invocation::{Invocation, InvocationError, InvocationStatus};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

use super::support::approvals::{
    WAIT, approve, ask, ask_in, deny, named, now, process, question, say, shortly_before_the_end, word,
};
use super::support::calls::Caller;
use super::support::{number, run};

contract!(
    an_approval_times_out_at_its_end_to_the_millisecond,
    an_approval_is_reaped_once_whoever_reaps,
    answered_approvals_are_not_reaped,
    many_approvals_are_reaped_in_one_go,
    an_end_is_told_once_to_the_process_that_waits,
    the_process_that_reaps_keeps_what_waits_in_it,
    arguments_are_forgotten_a_day_after_the_end_and_nothing_else,
    a_tenant_is_attended_while_a_process_that_lives_says_so,
    processes_are_forgotten_after_a_day,
    a_call_that_was_approved_and_died_before_it_was_made_is_orphaned,
    an_approved_call_that_was_made_or_refused_is_not_orphaned,
    an_approval_that_cannot_be_read_keeps_no_other_from_its_end,
    an_approval_that_cannot_be_read_keeps_no_other_from_being_told_and_forgotten,
);

/// Longer than a process may be silent.
const SILENCE: u64 = 31;

async fn a_call_that_was_approved_and_died_before_it_was_made_is_orphaned(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let dead = process(&tenant);
    let asked = ask_in(&tenant, dead, question(&tenant)).await;
    let approved = approve(&tenant, &asked, "alice").await.unwrap();
    // It has heard of the yes, and then it died.
    assert_eq!(collect(&tenant, dead).await, [approved]);
    tenant.wait(SILENCE);

    assert_eq!(reap(&tenant, process(&tenant)).await, 1);

    let ended = now(&tenant, &asked).await;
    assert_eq!((ended.status, ended.given()), (ApprovalStatus::Orphaned, 1));
    assert!(ended.reason.unwrap().contains("approved, but the gate process"));
    let event = tenant.events().await.pop().unwrap();
    assert_eq!((&event["type"], &event["data"]["approval_id"]), (&json!("approval.orphaned"), &json!(asked.id)));
    assert_eq!(reap(&tenant, process(&tenant)).await, 0, "once");
}

async fn an_approved_call_that_was_made_or_refused_is_not_orphaned(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let tenant = &caller.tenant;
    let dead = process(tenant);
    let call = caller.call(&caller.grant(None).await).await;
    let asked = ask_in(tenant, dead, Approval { invocation: call.invocation.id, ..question(tenant) }).await;
    let approved = approve(tenant, &asked, "alice").await.unwrap();
    let invocation = Invocation { status: InvocationStatus::Denied, ..call.invocation };
    let refusal = RecordDenial {
        audit: tenant.audit_of(&caller.agent),
        stage: "admit",
        error: InvocationError { code: "GRANT_RATE_LIMITED".to_owned(), reason: "no".to_owned() },
        returned: ToolReturned::rate_limited(&invocation),
        about_authority: false,
        decision: None,
        invocation,
        detached: None,
    };
    tenant.ledger.record_denial(refusal).await.unwrap();
    tenant.wait(SILENCE);
    assert_eq!(reap(tenant, process(tenant)).await, 0);
    assert_eq!(now(tenant, &asked).await, approved);
}

async fn an_approval_that_cannot_be_read_keeps_no_other_from_its_end(fixture: &LedgerFixture) {
    let (damaged, sound) = (fixture.tenant().await, fixture.tenant().await);
    let process = process(&damaged);
    for _ in 0..120 {
        ask_in(&damaged, process, question(&damaged)).await;
    }
    sound.clock.advance(Duration::from_millis(1));
    let asked = ask_in(&sound, process, question(&sound)).await;
    run(fixture, &format!("UPDATE approvals SET body = '{{' WHERE tenant = '{}'", damaged.id)).await;
    sound.wait(WAIT);

    let reported = sound.ledger.reap_approvals(process, sound.now()).await.unwrap_err();

    assert_eq!(reported.code(), Code::Internal);
    assert!(reported.reason().starts_with("skipped 120 rows"), "{reported}");
    assert_eq!(now(&sound, &asked).await.status, ApprovalStatus::TimedOut);
}

async fn an_approval_that_cannot_be_read_keeps_no_other_from_being_told_and_forgotten(fixture: &LedgerFixture) {
    let (damaged, sound) = (fixture.tenant().await, fixture.tenant().await);
    let process = process(&damaged);
    let lost = ask_in(&damaged, process, question(&damaged)).await;
    deny(&damaged, &lost, "alice").await.unwrap();
    sound.clock.advance(Duration::from_millis(1));
    let asked = ask_in(&sound, process, question(&sound)).await;
    let denied = deny(&sound, &asked, "alice").await.unwrap();
    run(fixture, &format!("UPDATE approvals SET body = '{{' WHERE tenant = '{}'", damaged.id)).await;

    assert_eq!(collect(&sound, process).await, [denied]);
    sound.wait(24 * 3600);
    let reported = sound.ledger.reap_approvals(process, sound.now()).await.unwrap_err();

    assert_eq!(reported.code(), Code::Internal);
    assert_eq!(now(&sound, &asked).await.arguments, None);
}

async fn reap(tenant: &TestTenant, process: ProcessId) -> u64 {
    tenant.ledger.reap_approvals(process, tenant.now()).await.unwrap()
}

async fn collect(tenant: &TestTenant, process: ProcessId) -> Vec<Approval> {
    let mut ended = tenant.ledger.collect_approvals(process).await.unwrap();
    ended.sort_by_key(|approval| approval.id);
    ended
}

async fn heartbeat(tenant: &TestTenant, process: ProcessId, attended: &[&TestTenant]) {
    let attended = attended.iter().map(|tenant| tenant.id.clone()).collect();
    tenant.ledger.heartbeat(Heartbeat { process, time: tenant.now(), attended }).await.unwrap();
}

async fn an_approval_times_out_at_its_end_to_the_millisecond(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let process = process(&tenant);
    let asked = ask_in(&tenant, process, question(&tenant)).await;
    shortly_before_the_end(&tenant, Duration::from_millis(1));
    assert_eq!(reap(&tenant, process).await, 0);
    assert_eq!(now(&tenant, &asked).await, asked);

    tenant.clock.advance(Duration::from_millis(1));

    assert_eq!(reap(&tenant, process).await, 1);
    let ended = now(&tenant, &asked).await;
    assert_eq!((ended.status, ended.reason.as_deref()), (ApprovalStatus::TimedOut, Some(TIMED_OUT)));
    assert_eq!(ended.resolved_at, Some(tenant.now()));
    let event = tenant.events().await.pop().unwrap();
    assert_eq!((&event["type"], &event["actor"]), (&json!("approval.timed_out"), &json!("core.system")));
    assert_eq!((&event["agent_id"], &event["data"]["reason"]), (&json!("billing"), &json!(TIMED_OUT)));
}

async fn an_approval_is_reaped_once_whoever_reaps(fixture: &LedgerFixture) {
    let here = fixture.tenant().await;
    let there = here.through(fixture.replica().await);
    let process = process(&here);
    for _ in 0..50 {
        ask_in(&here, process, question(&here)).await;
    }
    here.wait(WAIT);

    let reaped = futures_util::future::join_all((0..6).map(|turn| reap([&here, &there][turn % 2], process))).await;
    // What one skipped because another had it locked is reaped by now, or at the next sweep.
    let rest = reap(&here, process).await;

    assert_eq!(reaped.iter().sum::<u64>() + rest, 50);
    assert_eq!(here.events_of("approval.timed_out").await.len(), 50);
}

async fn answered_approvals_are_not_reaped(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let process = process(&tenant);
    let asked = ask_in(&tenant, process, question(&tenant)).await;
    let approved = approve(&tenant, &asked, "alice").await.unwrap();
    tenant.wait(WAIT + 60);
    assert_eq!(reap(&tenant, process).await, 0);
    assert_eq!(now(&tenant, &asked).await, approved);
}

async fn many_approvals_are_reaped_in_one_go(fixture: &LedgerFixture) {
    let (one, other) = (fixture.tenant().await, fixture.tenant().await);
    let process = process(&one);
    for tenant in [&one, &other] {
        let asking = (0..125).map(|_| ask_in(tenant, process, question(tenant)));
        futures_util::future::join_all(asking).await;
    }
    one.wait(WAIT);
    assert_eq!(reap(&one, process).await, 250);
    for tenant in [&one, &other] {
        assert_eq!(tenant.events_of("approval.timed_out").await.len(), 125);
    }
    assert_eq!(collect(&one, process).await.len(), 250);
}

async fn an_end_is_told_once_to_the_process_that_waits(fixture: &LedgerFixture) {
    let here = fixture.tenant().await;
    let there = here.through(fixture.replica().await);
    let (mine, other) = (process(&here), process(&here));
    let approved = ask_in(&here, mine, question(&here)).await;
    let denied = ask_in(&here, mine, question(&here)).await;
    let waiting = ask_in(&here, mine, question(&here)).await;
    let elsewhere = ask_in(&here, other, question(&here)).await;
    assert_eq!(collect(&here, mine).await, []);

    let approved = approve(&there, &approved, "alice").await.unwrap();
    let denied = deny(&there, &denied, "alice").await.unwrap();
    let elsewhere = approve(&there, &elsewhere, "alice").await.unwrap();

    let mut expected = vec![approved, denied];
    expected.sort_by_key(|approval| approval.id);
    assert_eq!(collect(&here, mine).await, expected);
    assert_eq!(collect(&here, mine).await, [], "each once");
    assert_eq!(collect(&there, other).await, [elsewhere]);
    let waiting = approve(&there, &waiting, "alice").await.unwrap();
    assert_eq!(collect(&here, mine).await, [waiting]);
}

async fn the_process_that_reaps_keeps_what_waits_in_it(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let process = process(&tenant);
    let asked = ask_in(&tenant, process, question(&tenant)).await;
    // Without a heartbeat for longer than others wait: it knows itself that it is alive.
    tenant.wait(WAIT - 1);
    assert_eq!(reap(&tenant, process).await, 0);
    assert_eq!(now(&tenant, &asked).await, asked);
}

async fn arguments_are_forgotten_a_day_after_the_end_and_nothing_else(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let process = process(&tenant);
    let arguments = Some(json!({"amount": 1200, "card": "4242"}));
    let with_both = || Approval { original_arguments: arguments.clone(), ..question(&tenant) };
    let answered = ask_in(&tenant, process, with_both()).await;
    let said = named(word(&tenant, &answered, &principal("alice"), Decision::Deny), "key-1");
    let answered = say(&tenant, said).await.unwrap();
    tenant.wait(24 * 3600 - 1);
    let long = Approval { expires_at: tenant.later(7 * 24 * 3600), ..with_both() };
    let waiting = ask_in(&tenant, process, long).await;
    let events = tenant.events().await.len();
    reap(&tenant, process).await;
    assert_eq!(now(&tenant, &answered).await, answered, "not yet");

    tenant.wait(1);
    reap(&tenant, process).await;
    tenant.wait(2 * 24 * 3600);
    reap(&tenant, process).await;

    let forgotten = Approval { arguments: None, original_arguments: None, ..answered.clone() };
    assert_eq!(now(&tenant, &answered).await, forgotten);
    assert_eq!(now(&tenant, &waiting).await, waiting, "what waits shows what it waits for");
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM approval_votes").await, 0);
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM approvals WHERE body LIKE '%4242%'").await, 1);
    assert_eq!(tenant.events().await.len(), events, "nothing happened to either");
}

async fn a_tenant_is_attended_while_a_process_that_lives_says_so(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let other = fixture.tenant().await;
    let (one, two) = (process(&tenant), process(&tenant));
    let attended = async |of: &TestTenant| of.ledger.is_attended(&of.id, of.now()).await.unwrap();
    assert!(!attended(&tenant).await, "nobody was ever there");
    heartbeat(&tenant, one, &[&tenant]).await;
    heartbeat(&tenant, two, &[]).await;
    assert!(attended(&tenant).await && !attended(&other).await);

    tenant.clock.advance(Duration::from_millis(29_999));
    assert!(attended(&tenant).await);
    tenant.clock.advance(Duration::from_millis(1));
    assert!(!attended(&tenant).await, "the process was not seen for too long");
    heartbeat(&tenant, one, &[&tenant, &other]).await;
    assert!(attended(&tenant).await && attended(&other).await);
    heartbeat(&tenant, one, &[&other]).await;
    assert!(!attended(&tenant).await && attended(&other).await, "the last word of a process is what holds");
    heartbeat(&tenant, two, &[&tenant]).await;
    assert!(attended(&tenant).await);
}

async fn processes_are_forgotten_after_a_day(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let (gone, alive) = (process(&tenant), process(&tenant));
    heartbeat(&tenant, gone, &[&tenant]).await;
    tenant.wait(1);
    heartbeat(&tenant, alive, &[&tenant]).await;
    tenant.wait(24 * 3600);
    reap(&tenant, alive).await;
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM processes").await, 1);
}

/// The state of another process's approval after this process has reaped.
async fn after_reaping(tenant: &TestTenant, asked: &Approval) -> ApprovalStatus {
    reap(tenant, process(tenant)).await;
    now(tenant, asked).await.status
}

#[tokio::test]
async fn what_an_earlier_process_left_waiting_on_sqlite_is_orphaned_at_once() {
    let fixture = LedgerFixture::sqlite().await;
    let tenant = fixture.tenant().await;
    let asked = ask(&tenant, question(&tenant)).await;
    assert!(!tenant.ledger.shares_approvals());
    let id = tenant.id.clone();
    drop(tenant);

    let again = LedgerFixture::open(fixture.close()).await;

    let tenant = TestTenant::existing(&again, id);
    assert_eq!(now(&tenant, &asked).await, asked);
    assert_eq!(after_reaping(&tenant, &asked).await, ApprovalStatus::Orphaned);
    assert!(now(&tenant, &asked).await.reason.unwrap().contains("was not made"));
    let event = tenant.events().await.pop().unwrap();
    assert_eq!((&event["type"], &event["actor"]), (&json!("approval.orphaned"), &json!("core.system")));
}

#[tokio::test]
async fn what_waits_in_another_process_on_postgres_is_orphaned_only_when_that_was_not_seen_for_long() {
    let fixture = LedgerFixture::postgres().await;
    let tenant = fixture.tenant().await;
    assert!(tenant.ledger.shares_approvals());
    let other = process(&tenant);
    let asked = ask_in(&tenant, other, question(&tenant)).await;
    tenant.clock.advance(Duration::from_millis(29_999));
    assert_eq!(after_reaping(&tenant, &asked).await, ApprovalStatus::Pending, "it has asked just now, so it lives");
    heartbeat(&tenant, other, &[]).await;
    tenant.clock.advance(Duration::from_millis(29_999));
    assert_eq!(after_reaping(&tenant, &asked).await, ApprovalStatus::Pending, "it was seen");

    tenant.clock.advance(Duration::from_millis(1));

    assert_eq!(after_reaping(&tenant, &asked).await, ApprovalStatus::Orphaned);
    let stands = now(&tenant, &asked).await;
    assert_eq!(collect(&tenant, other).await, [stands], "should it live after all, it is told");
}

#[tokio::test]
async fn a_yes_for_a_call_whose_process_died_on_postgres_is_not_counted_and_the_approver_sees_why() {
    let fixture = LedgerFixture::postgres().await;
    let tenant = fixture.tenant().await;
    let other = process(&tenant);
    heartbeat(&tenant, other, &[]).await;
    let asked = ask_in(&tenant, other, question(&tenant)).await;
    tenant.wait(SILENCE);

    let decided = approve(&tenant, &asked, "alice").await.unwrap();

    assert_eq!((decided.status, decided.votes.len()), (ApprovalStatus::Orphaned, 0));
    assert_eq!(now(&tenant, &asked).await, decided);
    assert_eq!(tenant.events_of("approval.orphaned").await.len(), 1);
    let late = approve(&tenant, &asked, "bob").await.unwrap_err();
    assert_eq!(late.code(), Code::ApprovalEnded);
}
