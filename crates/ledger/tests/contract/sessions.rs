//! Tool sessions: an event at each end, calls only in between, and an end in any case.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::{Admission, Admit, CloseSession, OpenSession, ToolSession};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::grant::Grant;
use toolgate_model::hook::RunId;
use toolgate_model::id::SessionId;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::support::calls::{Caller, DEADLINE, another, refusal_of};
use super::support::{refused, run};

contract!(
    a_session_leaves_an_event_at_each_end_in_its_run,
    calls_of_a_session_stand_between_its_ends,
    a_session_that_is_closed_is_not_there_and_is_not_closed_again,
    a_call_is_made_only_in_an_open_session_of_its_own_principal,
    a_call_is_made_in_a_session_until_its_time_is_over_to_the_millisecond,
    beside_a_call_without_a_session_others_are_made,
    a_session_is_not_closed_while_a_call_of_it_is_under_way,
    the_session_of_a_mounted_server_is_not_closed_while_its_principal_calls_the_server,
    a_session_whose_call_was_cut_off_is_closed_after_that,
    what_is_overdue_is_closed_as_failed_once_in_all_tenants,
    many_sessions_are_closed_in_one_go,
    a_session_that_cannot_be_read_keeps_no_other_from_being_closed,
    replicas_that_close_at_the_same_time_close_each_session_once,
    a_call_that_races_the_end_of_its_session_is_made_before_it_or_not_at_all,
    a_principal_has_so_many_sessions_open,
);

const LIFETIME: u64 = 120;
const MOST: u32 = 1000;

/// A session that is not stored.
fn new_session(caller: &Caller, run: &str) -> ToolSession {
    let now = caller.tenant.now();
    ToolSession {
        id: SessionId::new(now, random().expect("random bytes")),
        principal: caller.agent.clone(),
        tool: "connector:stripe.charges.create".to_owned(),
        run: RunId::parse(run).unwrap(),
        opened_at: now,
        expires_at: caller.tenant.later(LIFETIME),
    }
}

/// A session of the agent.
async fn open(caller: &Caller, run: &str) -> ToolSession {
    let session = new_session(caller, run);
    let audit = caller.tenant.audit_of(&caller.agent);
    caller.tenant.ledger.open_session(OpenSession { audit, session: session.clone(), most: MOST }).await.unwrap();
    session
}

async fn close(caller: &Caller, session: &ToolSession, completed: bool) -> Result<(), Refusal> {
    let audit = caller.tenant.audit_of(&caller.agent);
    caller.tenant.ledger.close_session(CloseSession { audit, id: session.id, completed }).await
}

async fn close_overdue(caller: &Caller) -> u64 {
    caller.tenant.ledger.close_sessions(caller.tenant.now()).await.unwrap()
}

async fn a_session_that_cannot_be_read_keeps_no_other_from_being_closed(fixture: &LedgerFixture) {
    let damaged = opened(fixture).await;
    let sound = Caller::new(fixture).await;
    open(&damaged, "run-1").await;
    sound.tenant.clock.advance(Duration::from_millis(1));
    let session = open(&sound, "run-2").await;
    run(fixture, &format!("UPDATE tool_sessions SET principal = '' WHERE tenant = '{}'", damaged.tenant.id)).await;
    sound.tenant.wait(LIFETIME);

    let reported = sound.tenant.ledger.close_sessions(sound.tenant.now()).await.unwrap_err();

    assert_eq!(reported.code(), Code::Internal);
    refused(&sound.tenant, Code::SessionNotFound, close(&sound, &session, true)).await;
}

/// After the first close since opening, which on SQLite treats every session as left over.
async fn opened(fixture: &LedgerFixture) -> Caller {
    let caller = Caller::new(fixture).await;
    assert_eq!(close_overdue(&caller).await, 0);
    caller
}

/// The call as part of this session.
fn within(call: &Admit, session: &ToolSession) -> Admit {
    let mut call = another(call);
    call.invocation.trace.session = Some(session.id);
    call.invocation.trace.run = Some(session.run.clone());
    call
}

/// A call of this session, decided now.
async fn call(caller: &Caller, grant: &Grant, session: &ToolSession) -> Admit {
    within(&caller.call(grant).await, session)
}

/// The open session of this id, as the tenant of the caller sees it.
async fn found(caller: &Caller, session: &ToolSession) -> Option<ToolSession> {
    caller.tenant.ledger.session(&caller.tenant.id, session.id).await.unwrap()
}

/// The types of the events of this run, oldest first.
async fn kinds_of_run(caller: &Caller, run: &str) -> Vec<String> {
    let events = caller.tenant.events().await.into_iter().filter(|event| event["run_id"] == run);
    events.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

/// The recorded closings: which session, and how.
async fn closed(caller: &Caller) -> Vec<(Value, Value)> {
    let events = caller.tenant.events_of("tool.session.closed").await;
    events.into_iter().map(|event| (event["data"]["sessionId"].clone(), event["data"]["outcome"].clone())).collect()
}

async fn a_session_leaves_an_event_at_each_end_in_its_run(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    for (run, completed, outcome) in [("run-1", true, "completed"), ("run-2", false, "failed")] {
        let session = open(&caller, run).await;
        assert_eq!(found(&caller, &session).await, Some(session.clone()));
        caller.tenant.wait(1);
        close(&caller, &session, completed).await.unwrap();

        let events = caller.tenant.events().await;
        let [first, last] = &events[events.len() - 2..] else { panic!("two events") };
        let told = json!({"sessionId": session.id, "toolId": "connector:stripe.charges.create"});
        assert_eq!((&first["type"], &first["data"]), (&json!("tool.session.opened"), &told));
        let told = json!({"sessionId": session.id, "toolId": session.tool, "outcome": outcome});
        assert_eq!((&last["type"], &last["data"]), (&json!("tool.session.closed"), &told));
        for event in [first, last] {
            assert_eq!((&event["run_id"], &event["agent_id"]), (&json!(run), &json!("billing")));
            assert_eq!(event["actor"], "billing");
        }
        assert_eq!(last["timestamp"], json!(caller.tenant.now()));
    }
}

async fn calls_of_a_session_stand_between_its_ends(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let grant = caller.grant(None).await;
    let session = open(&caller, "run-1").await;
    for _ in 0..2 {
        let call = call(&caller, &grant, &session).await;
        assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
        let record = caller.record(call.invocation.id).await.unwrap();
        assert_eq!(record.trace.session, Some(session.id), "it is read back as part of its session");
        caller.settle(&call, "{}").await;
    }
    close(&caller, &session, true).await.unwrap();
    let call = ["agent.toolCalled", "tool.invoked"];
    let expected = [&["tool.session.opened"][..], &call, &call, &["tool.session.closed"]].concat();
    assert_eq!(kinds_of_run(&caller, "run-1").await, expected);
}

async fn a_session_that_is_closed_is_not_there_and_is_not_closed_again(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let session = open(&caller, "run-1").await;
    let elsewhere = Caller::new(fixture).await;
    assert_eq!(found(&elsewhere, &session).await, None, "of another tenant");
    refused(&elsewhere.tenant, Code::SessionNotFound, close(&elsewhere, &session, true)).await;

    close(&caller, &session, true).await.unwrap();

    assert_eq!(found(&caller, &session).await, None);
    for completed in [true, false] {
        refused(&caller.tenant, Code::SessionNotFound, close(&caller, &session, completed)).await;
    }
    refused(&caller.tenant, Code::SessionNotFound, close(&caller, &new_session(&caller, "run-1"), true)).await;
    caller.tenant.wait(LIFETIME);
    assert_eq!(close_overdue(&caller).await, 0);
    assert_eq!(closed(&caller).await, [(json!(session.id), json!("completed"))]);
}

async fn a_call_is_made_only_in_an_open_session_of_its_own_principal(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let grant = caller.grant(None).await;
    let stranger = Caller::of(&caller.tenant, "stranger").await;
    let theirs = open(&stranger, "run-1").await;
    let elsewhere = Caller::new(fixture).await;
    let of_another_tenant = open(&elsewhere, "run-1").await;
    let ended = open(&caller, "run-1").await;
    close(&caller, &ended, true).await.unwrap();
    let never = new_session(&caller, "run-1");

    for session in [theirs, of_another_tenant, ended, never] {
        let call = call(&caller, &grant, &session).await;
        let before = caller.tenant.events().await.len();
        let refusal = refusal_of(caller.send(call.clone()).await, Code::SessionNotFound);
        assert_eq!(refusal.reason(), format!("there is no open session {}", session.id), "the same for all");
        assert_eq!(caller.record(call.invocation.id).await, None);
        assert_eq!(caller.tenant.events().await.len(), before, "no call is told of");
    }
    let own = open(&caller, "run-2").await;
    assert_eq!(caller.send(call(&caller, &grant, &own).await).await, Admission::Admitted);
}

async fn a_call_is_made_in_a_session_until_its_time_is_over_to_the_millisecond(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let grant = caller.grant(None).await;
    let session = open(&caller, "run-1").await;
    fixture.clock().advance(Duration::from_millis(LIFETIME * 1000 - 1));
    assert_eq!(caller.send(call(&caller, &grant, &session).await).await, Admission::Admitted);
    fixture.clock().advance(Duration::from_millis(1));
    // It is not closed yet, but has expired.
    assert!(found(&caller, &session).await.is_some());
    refusal_of(caller.send(call(&caller, &grant, &session).await).await, Code::SessionNotFound);
}

async fn beside_a_call_without_a_session_others_are_made(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    // With capacity for two: a refused call takes no slot.
    let grant = caller.grant(2).await;
    let (open_one, never) = (open(&caller, "run-1").await, new_session(&caller, "run-2"));
    let plain = caller.call(&grant).await;
    let (refused, inside, outside) = tokio::join!(
        caller.send(within(&plain, &never)),
        caller.send(within(&plain, &open_one)),
        caller.send(another(&plain)),
    );
    refusal_of(refused, Code::SessionNotFound);
    assert_eq!((inside, outside), (Admission::Admitted, Admission::Admitted));
    assert!(kinds_of_run(&caller, "run-2").await.is_empty());
}

async fn the_session_of_a_mounted_server_is_not_closed_while_its_principal_calls_the_server(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let grant = caller.grant(None).await;
    let call = caller.call(&grant).await;
    let service = call.invocation.service.clone().unwrap();
    let mut sessions = Vec::new();
    for tool in [ToolSession::of_mount(&service), "mcp:other".to_owned()] {
        let session = ToolSession { tool, ..new_session(&caller, "run-1") };
        let audit = caller.tenant.audit_of(&caller.agent);
        caller.tenant.ledger.open_session(OpenSession { audit, session: session.clone(), most: MOST }).await.unwrap();
        sessions.push(session);
    }
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    refused(&caller.tenant, Code::VersionConflict, close(&caller, &sessions[0], true)).await;
    close(&caller, &sessions[1], true).await.unwrap();
    caller.settle(&call, "{}").await;
    close(&caller, &sessions[0], true).await.unwrap();
}

async fn a_session_is_not_closed_while_a_call_of_it_is_under_way(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let grant = caller.grant(None).await;
    let (one, other) = (open(&caller, "run-1").await, open(&caller, "run-2").await);
    let call = call(&caller, &grant, &one).await;
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);

    refused(&caller.tenant, Code::VersionConflict, close(&caller, &one, true)).await;
    close(&caller, &other, true).await.unwrap();
    caller.tenant.wait(LIFETIME + 1);
    assert_eq!(close_overdue(&caller).await, 0, "not by the clock either");
    assert!(found(&caller, &one).await.is_some());

    caller.settle(&call, "{}").await;
    assert_eq!(close_overdue(&caller).await, 1);
    let expected = ["tool.session.opened", "agent.toolCalled", "tool.invoked", "tool.session.closed"];
    assert_eq!(kinds_of_run(&caller, "run-1").await, expected);
    assert_eq!(closed(&caller).await, [(json!(other.id), json!("completed")), (json!(one.id), json!("failed"))]);
}

async fn a_session_whose_call_was_cut_off_is_closed_after_that(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let grant = caller.grant(None).await;
    let session = open(&caller, "run-1").await;
    assert_eq!(caller.send(call(&caller, &grant, &session).await).await, Admission::Admitted);
    caller.tenant.wait(LIFETIME.max(DEADLINE) + 1);
    assert_eq!(close_overdue(&caller).await, 0);
    assert_eq!(caller.tenant.ledger.close_calls(caller.tenant.now()).await.unwrap(), 1);
    assert_eq!(close_overdue(&caller).await, 1);
    let expected = ["tool.session.opened", "agent.toolCalled", "tool.invoked", "tool.session.closed"];
    assert_eq!(kinds_of_run(&caller, "run-1").await, expected);
}

async fn what_is_overdue_is_closed_as_failed_once_in_all_tenants(fixture: &LedgerFixture) {
    let (one, other) = (opened(fixture).await, Caller::new(fixture).await);
    let (first, second) = (open(&one, "run-1").await, open(&other, "run-1").await);
    one.tenant.wait(1);
    let later = open(&one, "run-2").await;
    fixture.clock().advance(Duration::from_millis(LIFETIME * 1000 - 1001));
    assert_eq!(close_overdue(&one).await, 0);
    fixture.clock().advance(Duration::from_millis(1));
    assert_eq!(close_overdue(&one).await, 2);
    assert_eq!(close_overdue(&one).await, 0);

    for (caller, session) in [(&one, first), (&other, second)] {
        let events = caller.tenant.events_of("tool.session.closed").await;
        let [event] = events.as_slice() else { panic!("one end: {events:?}") };
        let told = json!({"sessionId": session.id, "toolId": session.tool, "outcome": "failed"});
        assert_eq!((&event["data"], &event["run_id"]), (&told, &json!("run-1")));
        assert_eq!((&event["actor"], &event["agent_id"]), (&json!("core.system"), &json!("billing")));
        assert_eq!(event["tenant"], json!(caller.tenant.id));
    }
    assert!(found(&one, &later).await.is_some());
}

async fn many_sessions_are_closed_in_one_go(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    for number in 0..250 {
        open(&caller, &format!("run-{number}")).await;
    }
    caller.tenant.wait(LIFETIME);
    assert_eq!(close_overdue(&caller).await, 250);
    assert_eq!(closed(&caller).await.len(), 250);
}

async fn replicas_that_close_at_the_same_time_close_each_session_once(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let there = caller.at_replica(fixture).await;
    let mut own = Vec::new();
    for number in 0..150 {
        own.push(open(&caller, &format!("run-{number}")).await);
    }
    caller.tenant.wait(LIFETIME);

    // Some of them are closed by their owner at the same moment.
    let owner = futures_util::future::join_all(own.iter().step_by(10).map(|session| close(&there, session, true)));
    let clock = futures_util::future::join_all((0..6).map(|turn| close_overdue([&caller, &there][turn % 2])));
    let (owner, clock) = tokio::join!(owner, clock);
    // What one skipped because another had it locked is closed by now, or at the next sweep.
    let rest = close_overdue(&caller).await;

    let by_owner = owner.iter().filter(|outcome| outcome.is_ok()).count();
    for refusal in owner.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert_eq!(refusal.code(), Code::SessionNotFound);
    }
    assert_eq!(clock.iter().sum::<u64>() + rest + u64::try_from(by_owner).unwrap(), 150);
    let told = closed(&caller).await;
    let ids: std::collections::BTreeSet<String> = told.iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!((told.len(), ids.len()), (150, 150));
}

async fn a_call_that_races_the_end_of_its_session_is_made_before_it_or_not_at_all(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let there = caller.at_replica(fixture).await;
    let grant = caller.grant(None).await;
    for round in 0..8 {
        // All of them arrive in time; the connection to the ledger is slow.
        let mut races = Vec::new();
        for number in 0..24 {
            let session = open(&caller, &format!("run-{round}-{number}")).await;
            let call = call(&caller, &grant, &session).await;
            races.push((session, call));
        }
        let end = caller.tenant.later(LIFETIME);
        let sending = futures_util::future::join_all(races.iter().map(|(_, call)| there.send(call.clone())));
        let owned = races.iter().step_by(4).map(|(session, _)| close(&caller, session, true));
        let (sent, _, _) = tokio::join!(sending, futures_util::future::join_all(owned), async {
            for _ in 0..3 {
                caller.tenant.ledger.close_sessions(end).await.unwrap();
            }
        });
        for ((session, call), sent) in races.iter().zip(sent) {
            let open = found(&caller, session).await.is_some();
            assert_eq!(sent == Admission::Admitted, open, "a call that was made keeps its session open: {sent:?}");
            if open {
                there.settle(call, "{}").await;
            }
        }
        caller.tenant.ledger.close_sessions(end).await.unwrap();
        for (session, _) in &races {
            let kinds = kinds_of_run(&caller, session.run.as_str()).await;
            assert_eq!(kinds.iter().position(|kind| kind == "tool.session.closed"), Some(kinds.len() - 1), "{kinds:?}");
        }
    }
}

/// Reopens the ledger with a session that is not overdue and has a call in flight, and returns how many sessions the
/// first and the second close find, with another one opened before the second.
async fn closed_after_opening(fixture: LedgerFixture) -> (u64, u64) {
    let caller = opened(&fixture).await;
    let grant = caller.grant(None).await;
    let left_over = open(&caller, "run-1").await;
    assert_eq!(caller.send(call(&caller, &grant, &left_over).await).await, Admission::Admitted);
    let Caller { tenant, agent, key } = caller;
    let id = tenant.id.clone();
    drop(tenant);

    let again = LedgerFixture::open(fixture.close()).await;

    let caller = Caller { tenant: TestTenant::existing(&again, id), agent, key };
    caller.tenant.ledger.close_calls(caller.tenant.now()).await.unwrap();
    let first = close_overdue(&caller).await;
    let fresh = open(&caller, "run-2").await;
    let second = close_overdue(&caller).await;
    assert!(found(&caller, &fresh).await.is_some());
    let told = closed(&caller).await;
    let expected = (first == 1).then(|| (json!(left_over.id), json!("failed")));
    assert_eq!(told, Vec::from_iter(expected));
    (first, second)
}

#[tokio::test]
async fn what_an_earlier_process_left_open_on_sqlite_is_closed_as_failed_at_once_and_only_that() {
    assert_eq!(closed_after_opening(LedgerFixture::sqlite().await).await, (1, 0));
}

#[tokio::test]
async fn what_another_replica_has_open_on_postgres_is_left_alone() {
    assert_eq!(closed_after_opening(LedgerFixture::postgres().await).await, (0, 0));
}

async fn a_principal_has_so_many_sessions_open(fixture: &LedgerFixture) {
    let caller = opened(fixture).await;
    let other = Caller::new(fixture).await;
    let open_one = |caller: &Caller| {
        let (session, audit) = (new_session(caller, "run-1"), caller.tenant.audit_of(&caller.agent));
        let ledger = std::sync::Arc::clone(&caller.tenant.ledger);
        async move { ledger.open_session(OpenSession { audit, session: session.clone(), most: 2 }).await.map(|()| session) }
    };
    let first = open_one(&caller).await.unwrap();
    open_one(&caller).await.unwrap();
    refused(&caller.tenant, Code::TooManySessions, open_one(&caller)).await;
    open_one(&other).await.unwrap();
    close(&caller, &first, true).await.unwrap();
    open_one(&caller).await.unwrap();
}
