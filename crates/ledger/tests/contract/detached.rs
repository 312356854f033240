//! Detached calls: stored once, run by one process at a time, waiting without a process, made once, and limited.

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::{
    Admission, Admit, AskedApproval, AuditContext, ClaimDetached, DetachCall, Detached, DetachedCall, DetachedLimits,
    DetachedState, FinishDetached, ParkCall, RecordDenial, Rewrap, Settle,
};
use toolgate_gate::ports::sealer::{MasterKeyId, SealSubject};
use toolgate_gate::refusal::Code;
use toolgate_model::approval::{Approval, ApprovalStatus};
use toolgate_model::grant::Grant;
use toolgate_model::hook::ToolReturned;
use toolgate_model::id::{InvocationId, ProcessId};
use toolgate_model::invocation::{IdempotencyKey, Invocation, InvocationError, InvocationStatus};
use toolgate_testkit::ledger_fixture::{LedgerFixture, sealed_under};

use super::support::approvals::{WAIT, approve, deny, people, process, question, requesting};
use super::support::calls::{Caller, another};
use super::support::refused;
use super::support::replicas::Replicas;

contract!(
    a_call_is_stored_with_its_event_and_claimed_by_its_process,
    a_call_whose_process_died_is_claimed_by_another_and_then_not_made_by_the_first,
    a_call_that_waits_is_nobodys_until_its_approval_ends,
    many_calls_of_one_agent_leave_room_for_those_of_another,
    the_approval_of_a_detached_call_outlives_its_process,
    a_call_is_admitted_once,
    a_settlement_keeps_the_outcome,
    a_refusal_is_recorded_by_the_process_that_has_the_call,
    a_cancelled_call_is_not_admitted,
    an_agent_has_a_limited_number_of_calls_and_bytes,
    outcomes_that_were_fetched_are_kept_until_their_place_is_needed,
    the_same_call_under_the_same_key_is_stored_once,
    of_two_repetitions_at_the_same_moment_one_is_stored,
    what_was_cut_off_ends_and_old_outcomes_are_deleted,
    sealed_calls_follow_the_master_key,
);

/// Longer than a process may be silent.
const SILENCE: u64 = 31;
const LIMITS: DetachedLimits = DetachedLimits { calls: 3, bytes: 1024 };

/// The command that stores a call of the caller.
fn storing(caller: &Caller, process: ProcessId, key: Option<&str>) -> DetachCall {
    let tenant = &caller.tenant;
    DetachCall {
        audit: tenant.audit_of(&caller.agent),
        call: DetachedCall {
            id: InvocationId::new(tenant.now(), random().unwrap()),
            tenant: tenant.id.clone(),
            agent: caller.agent.clone(),
            actor: caller.agent.clone(),
            key: caller.key,
            tool: "stripe.charges.create".to_owned(),
            idempotency_key: key.map(|key| IdempotencyKey::parse(key).unwrap()),
            state: DetachedState::Ready,
            asked: Vec::new(),
            cancelled: false,
            attempts: 1,
            created_at: tenant.now(),
            finished_at: None,
        },
        sealed: sealed_under("first"),
        arguments_hash: "ab".repeat(32),
        request_digest: key.map(|_| "digest".to_owned()),
        repeats: None,
        process,
        limits: LIMITS,
    }
}

async fn stored(caller: &Caller, process: ProcessId) -> InvocationId {
    let command = storing(caller, process, None);
    let id = command.call.id;
    assert_eq!(caller.tenant.ledger.detach_call(command).await.unwrap(), Detached::Accepted);
    id
}

/// The calls that this process can claim besides those that it runs.
async fn claimed(caller: &Caller, process: ProcessId, running: &[InvocationId]) -> Vec<InvocationId> {
    let command = ClaimDetached { process, now: caller.tenant.now(), limit: 10, running: running.to_vec() };
    let claimed = caller.tenant.ledger.claim_detached(command).await.unwrap();
    claimed.into_iter().map(|claimed| claimed.call.id).collect()
}

async fn state(caller: &Caller, id: InvocationId) -> DetachedState {
    caller.tenant.ledger.detached_call(&caller.tenant.id, id).await.unwrap().unwrap().call.state
}

/// The admission of a detached call by this process.
async fn admission(caller: &Caller, grant: &Grant, id: InvocationId, process: ProcessId) -> Admit {
    let mut admit = caller.call(grant).await;
    admit.invocation.id = id;
    Admit { detached: Some(process), ..admit }
}

/// Has a call wait for an approval.
async fn parked(caller: &Caller, process: ProcessId, id: InvocationId) -> Approval {
    let tenant = &caller.tenant;
    people(tenant).await;
    let approval = Approval { invocation: id, detached: true, agent: caller.agent.clone(), ..question(tenant) };
    let mut request = requesting(tenant, process, approval.clone());
    request.parks = Some(ParkCall { process, asked: Vec::new(), first: true });
    tenant.ledger.request_approval(request).await.unwrap();
    approval
}

fn finish(caller: &Caller, process: ProcessId) -> FinishDetached {
    FinishDetached { process, sealed: Some(sealed_under("first")), time: caller.tenant.now() }
}

async fn a_call_is_stored_with_its_event_and_claimed_by_its_process(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let own = process(&caller.tenant);

    let id = stored(&caller, own).await;

    assert_eq!(claimed(&caller, own, &[id]).await, [], "it runs");
    let event = caller.tenant.events().await.pop().unwrap();
    assert_eq!((&event["type"], &event["data"]["invocation_id"]), (&json!("call.detached"), &json!(id)));
    let call = caller.tenant.ledger.detached_call(&caller.tenant.id, id).await.unwrap().unwrap();
    assert!(call.outcome.is_none());
    // A call that it releases, because the ledger or the key provider was unavailable, can be claimed by it again.
    caller.tenant.ledger.release_detached(&caller.tenant.id, id, own).await.unwrap();
    assert_eq!(claimed(&caller, own, &[]).await, [id]);
}

async fn a_call_whose_process_died_is_claimed_by_another_and_then_not_made_by_the_first(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (dead, alive) = (process(&caller.tenant), process(&caller.tenant));
    let grant = caller.grant(None).await;
    let id = stored(&caller, dead).await;
    caller.tenant.wait(SILENCE);

    assert_eq!(claimed(&caller, alive, &[]).await, [id]);

    // The first process was only slow. It neither makes the call nor records a refusal of it.
    let Admission::Refused(refusal) = caller.send(admission(&caller, &grant, id, dead).await).await else {
        panic!("admitted by a process that has lost it");
    };
    assert_eq!(refusal.code(), Code::VersionConflict);
    refused(
        &caller.tenant,
        Code::VersionConflict,
        caller.tenant.ledger.record_denial(denial(&caller, &grant, id, dead)),
    )
    .await;
    assert_eq!(caller.record(id).await, None);
    assert_eq!(caller.send(admission(&caller, &grant, id, alive).await).await, Admission::Admitted);
}

async fn many_calls_of_one_agent_leave_room_for_those_of_another(fixture: &LedgerFixture) {
    let busy = Caller::new(fixture).await;
    let other = Caller::of(&busy.tenant, "other").await;
    let (dead, alive) = (process(&busy.tenant), process(&busy.tenant));
    for _ in 0..20 {
        let many = DetachedLimits { calls: 100, bytes: 1 << 20 };
        let command = DetachCall { limits: many, ..storing(&busy, dead, None) };
        assert_eq!(busy.tenant.ledger.detach_call(command).await.unwrap(), Detached::Accepted);
    }
    let last = stored(&other, dead).await;
    busy.tenant.wait(SILENCE);

    let command = ClaimDetached { process: alive, now: busy.tenant.now(), limit: 100, running: Vec::new() };
    let claimed = busy.tenant.ledger.claim_detached(command).await.unwrap();

    assert_eq!(claimed.len(), 17);
    assert!(claimed.iter().any(|claimed| claimed.call.id == last));
}

async fn a_call_that_waits_is_nobodys_until_its_approval_ends(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let own = process(&caller.tenant);
    let id = stored(&caller, own).await;
    let approval = parked(&caller, own, id).await;

    assert_eq!(state(&caller, id).await, DetachedState::Waiting);
    assert_eq!(claimed(&caller, own, &[]).await, []);
    approve(&caller.tenant, &approval, "alice").await.unwrap();
    assert_eq!(claimed(&caller, own, &[]).await, [id]);
    let call = caller.tenant.ledger.detached_call(&caller.tenant.id, id).await.unwrap().unwrap().call;
    assert_eq!(call.asked, [AskedApproval { approval: approval.id, first: true }]);

    let denied = stored(&caller, own).await;
    let approval = parked(&caller, own, denied).await;
    deny(&caller.tenant, &approval, "alice").await.unwrap();
    assert_eq!(claimed(&caller, own, &[id]).await, [denied], "whatever the decision is");
}

async fn the_approval_of_a_detached_call_outlives_its_process(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (dead, alive) = (process(&caller.tenant), process(&caller.tenant));
    let (waiting, approved) = (stored(&caller, dead).await, stored(&caller, dead).await);
    let first = parked(&caller, dead, waiting).await;
    let second = parked(&caller, dead, approved).await;
    caller.tenant.wait(SILENCE);

    assert_eq!(caller.tenant.ledger.reap_approvals(alive, caller.tenant.now()).await.unwrap(), 0);
    let decided = approve(&caller.tenant, &second, "alice").await.unwrap();
    assert_eq!(decided.status, ApprovalStatus::Approved);
    caller.tenant.wait(SILENCE);
    assert_eq!(caller.tenant.ledger.reap_approvals(alive, caller.tenant.now()).await.unwrap(), 0);
    assert_eq!(claimed(&caller, alive, &[]).await, [approved]);

    caller.tenant.wait(WAIT);
    assert_eq!(caller.tenant.ledger.reap_approvals(alive, caller.tenant.now()).await.unwrap(), 1);
    let ended = caller.tenant.ledger.approval(&caller.tenant.id, first.id).await.unwrap().unwrap();
    assert_eq!(ended.status, ApprovalStatus::TimedOut);
    assert_eq!(claimed(&caller, alive, &[approved]).await, [waiting]);
}

async fn a_call_is_admitted_once(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let own = process(&caller.tenant);
    let grant = caller.grant(None).await;
    let id = stored(&caller, own).await;
    let admit = admission(&caller, &grant, id, own).await;
    // Others that come at the same time are not touched.
    let (first, second, other) = tokio::join!(
        caller.send(admit.clone()),
        caller.send(admit.clone()),
        caller.send(Admit { detached: None, ..another(&admit) })
    );

    let admitted = [&first, &second].into_iter().filter(|outcome| **outcome == Admission::Admitted).count();
    assert_eq!((admitted, other), (1, Admission::Admitted));
    assert_eq!(state(&caller, id).await, DetachedState::Running);
    assert_eq!(claimed(&caller, own, &[]).await, []);
    caller.tenant.wait(SILENCE);
    assert_eq!(claimed(&caller, process(&caller.tenant), &[]).await, [], "it may have been made");
}

async fn a_settlement_keeps_the_outcome(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let own = process(&caller.tenant);
    let grant = caller.grant(None).await;
    let id = stored(&caller, own).await;
    let admit = admission(&caller, &grant, id, own).await;
    assert_eq!(caller.send(admit.clone()).await, Admission::Admitted);

    let settle = Settle { stored_result: None, detached: Some(finish(&caller, own)), ..caller.settlement(&admit, "") };
    caller.tenant.ledger.settle(Arc::new(settle)).await.unwrap();

    let call = caller.tenant.ledger.detached_call(&caller.tenant.id, id).await.unwrap().unwrap();
    assert_eq!((call.call.state, call.call.finished_at), (DetachedState::Finished, Some(caller.tenant.now())));
    assert!(call.outcome.unwrap().sealed == sealed_under("first"));
    assert_eq!(caller.record(id).await.unwrap().status, InvocationStatus::Success);
    assert!(caller.tenant.ledger.forget_outcome(&caller.tenant.id, id).await.unwrap());
    assert!(caller.tenant.ledger.detached_call(&caller.tenant.id, id).await.unwrap().is_none());
    assert!(!caller.tenant.ledger.forget_outcome(&caller.tenant.id, id).await.unwrap());
}

/// The record of a refused call.
fn denial(caller: &Caller, grant: &Grant, id: InvocationId, process: ProcessId) -> RecordDenial {
    let status = InvocationStatus::Denied;
    let invocation = Invocation { id, status, ..caller.invocation(grant) };
    let audit: AuditContext = caller.tenant.audit_of(&caller.agent);
    RecordDenial {
        audit,
        stage: "approve",
        error: InvocationError { code: "APPROVAL_DENIED".to_owned(), reason: "no".to_owned() },
        returned: ToolReturned::forbidden(&invocation),
        about_authority: false,
        decision: None,
        detached: Some(finish(caller, process)),
        invocation,
    }
}

async fn a_refusal_is_recorded_by_the_process_that_has_the_call(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (own, other) = (process(&caller.tenant), process(&caller.tenant));
    let grant = caller.grant(None).await;
    let id = stored(&caller, own).await;

    refused(
        &caller.tenant,
        Code::VersionConflict,
        caller.tenant.ledger.record_denial(denial(&caller, &grant, id, other)),
    )
    .await;
    assert_eq!((caller.record(id).await, state(&caller, id).await), (None, DetachedState::Ready));

    caller.tenant.ledger.record_denial(denial(&caller, &grant, id, own)).await.unwrap();
    assert_eq!(caller.record(id).await.unwrap().status, InvocationStatus::Denied);
    assert_eq!(state(&caller, id).await, DetachedState::Finished);
}

async fn a_cancelled_call_is_not_admitted(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let own = process(&caller.tenant);
    let grant = caller.grant(None).await;
    let id = stored(&caller, own).await;
    parked(&caller, own, id).await;

    let call = caller.tenant.ledger.cancel_detached(&caller.tenant.id, id).await.unwrap().unwrap();

    assert!(call.cancelled);
    assert_eq!(claimed(&caller, own, &[]).await, [id], "to be ended");
    let Admission::Refused(refusal) = caller.send(admission(&caller, &grant, id, own).await).await else {
        panic!("admitted although it was cancelled");
    };
    assert_eq!(refusal.code(), Code::CallCancelled);
    let running = stored(&caller, own).await;
    assert_eq!(caller.send(admission(&caller, &grant, running, own).await).await, Admission::Admitted);
    let call = caller.tenant.ledger.cancel_detached(&caller.tenant.id, running).await.unwrap().unwrap();
    assert!(!call.cancelled, "one that was admitted goes on");
}

async fn an_agent_has_a_limited_number_of_calls_and_bytes(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let own = process(&caller.tenant);
    let ledger = &caller.tenant.ledger;
    let mut large = storing(&caller, own, None);
    large.sealed.ciphertext = vec![0; 1025];
    refused(&caller.tenant, Code::TooManyDetached, ledger.detach_call(large)).await;
    let stores = (0..6).map(|_| ledger.detach_call(storing(&caller, own, None)));

    let outcomes = futures_util::future::join_all(stores).await;

    let accepted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(accepted, 3, "also where they come at the same time");
}

async fn outcomes_that_were_fetched_are_kept_until_their_place_is_needed(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let (own, ledger, tenant) = (process(&caller.tenant), &caller.tenant.ledger, &caller.tenant.id);
    let calls = [stored(&caller, own).await, stored(&caller, own).await, stored(&caller, own).await];
    // One that has not ended cannot have been fetched.
    ledger.note_fetched(tenant, calls[0]).await.unwrap();
    for id in &calls[1..] {
        ledger.finish_detached(tenant, *id, finish(&caller, own)).await.unwrap();
    }
    refused(&caller.tenant, Code::TooManyDetached, ledger.detach_call(storing(&caller, own, None))).await;
    ledger.note_fetched(tenant, calls[1]).await.unwrap();
    assert!(ledger.detached_call(tenant, calls[1]).await.unwrap().unwrap().outcome.is_some(), "fetched again");
    stored(&caller, own).await;
    assert!(ledger.detached_call(tenant, calls[1]).await.unwrap().is_none());
    assert_eq!(state(&caller, calls[2]).await, DetachedState::Finished);
    assert_eq!(state(&caller, calls[0]).await, DetachedState::Ready);
    refused(&caller.tenant, Code::TooManyDetached, ledger.detach_call(storing(&caller, own, None))).await;
}

async fn the_same_call_under_the_same_key_is_stored_once(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let own = process(&caller.tenant);
    let ledger = &caller.tenant.ledger;
    let first = storing(&caller, own, Some("order-1"));
    let id = first.call.id;
    assert_eq!(ledger.detach_call(first).await.unwrap(), Detached::Accepted);

    assert_eq!(ledger.detach_call(storing(&caller, own, Some("order-1"))).await.unwrap(), Detached::Known(id));
    let mut other = storing(&caller, own, Some("order-1"));
    other.request_digest = Some("another".to_owned());
    refused(&caller.tenant, Code::IdempotencyConflict, ledger.detach_call(other)).await;
}

async fn of_two_repetitions_at_the_same_moment_one_is_stored(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let caller = replicas.here();
    let (own, ledger) = (process(&caller.tenant), &caller.tenant.ledger);
    let repetition = |caller: &Caller, digest: usize, number: usize| DetachCall {
        repeats: Some(format!("again-{digest:032}-")),
        limits: DetachedLimits { calls: 1_000, bytes: 1 << 20 },
        ..storing(caller, own, Some(&format!("again-{digest:032}-{number:016}")))
    };
    for digest in 0..16 {
        let mut attempts = JoinSet::new();
        for number in 0..4 {
            let replica = replicas.turn(number).clone();
            let command = repetition(&replica, digest, number);
            attempts.spawn(async move { (command.call.id, replica.tenant.ledger.detach_call(command).await.unwrap()) });
        }
        let (accepted, known): (Vec<_>, Vec<_>) =
            attempts.join_all().await.into_iter().partition(|(_, outcome)| *outcome == Detached::Accepted);
        let [(id, _)] = accepted.as_slice() else { panic!("{accepted:?}") };
        assert!(known.iter().all(|(_, outcome)| *outcome == Detached::Known(*id)), "{known:?}");
    }
    // The call of another agent is another one, and so is every call once the result of the first was fetched.
    let other = Caller::of(&caller.tenant, "other").await;
    assert_eq!(ledger.detach_call(repetition(&other, 0, 9)).await.unwrap(), Detached::Accepted);
    let first = repetition(caller, 99, 0);
    let (tenant, id) = (&caller.tenant.id, first.call.id);
    assert_eq!(ledger.detach_call(first).await.unwrap(), Detached::Accepted);
    ledger.finish_detached(tenant, id, finish(caller, own)).await.unwrap();
    assert_eq!(ledger.detach_call(repetition(caller, 99, 1)).await.unwrap(), Detached::Known(id));
    assert!(ledger.forget_outcome(tenant, id).await.unwrap());
    assert_eq!(ledger.detach_call(repetition(caller, 99, 2)).await.unwrap(), Detached::Accepted);
}

async fn what_was_cut_off_ends_and_old_outcomes_are_deleted(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let own = process(&caller.tenant);
    let grant = caller.grant(None).await;
    let id = stored(&caller, own).await;
    assert_eq!(caller.send(admission(&caller, &grant, id, own).await).await, Admission::Admitted);
    let (ledger, tenant) = (&caller.tenant.ledger, &caller.tenant);
    ledger.sweep_detached(tenant.now(), tenant.now().minus(std::time::Duration::from_secs(60))).await.unwrap();
    assert_eq!(state(&caller, id).await, DetachedState::Running, "it is in flight");

    tenant.wait(3600);
    ledger.close_calls(tenant.now()).await.unwrap();
    ledger.sweep_detached(tenant.now(), tenant.now().minus(std::time::Duration::from_secs(60))).await.unwrap();
    assert_eq!(state(&caller, id).await, DetachedState::Finished);
    assert_eq!(caller.record(id).await.unwrap().status, InvocationStatus::Unknown);

    tenant.wait(61);
    ledger.sweep_detached(tenant.now(), tenant.now().minus(std::time::Duration::from_secs(60))).await.unwrap();
    assert!(ledger.detached_call(&tenant.id, id).await.unwrap().is_none());
}

async fn sealed_calls_follow_the_master_key(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let own = process(&caller.tenant);
    let id = stored(&caller, own).await;
    let (ledger, second) = (&caller.tenant.ledger, MasterKeyId("second".to_owned()));
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = ledger.sealed_under_other_keys(&second, after, 1).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.binding.subject);
        found.extend(page);
    }
    let call = found.iter().find(|sealed| matches!(sealed.binding.subject, SealSubject::Call { .. })).unwrap();
    assert!(matches!(call.binding.subject, SealSubject::Call { id: listed, .. } if listed == id));
    let first = MasterKeyId("first".to_owned());
    assert!(!ledger.retire_key(&first, caller.tenant.now()).await.unwrap(), "it wraps the call");
    for sealed in found {
        let rewrap =
            Rewrap { binding: sealed.binding, replaced: sealed.sealed.wrapped_key, sealed: sealed_under("second") };
        assert!(ledger.rewrap(rewrap).await.unwrap());
    }

    assert!(ledger.retire_key(&first, caller.tenant.now()).await.unwrap());
    refused(&caller.tenant, Code::MasterKeyRetired, ledger.detach_call(storing(&caller, own, None))).await;
}
