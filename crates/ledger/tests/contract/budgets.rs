//! Budgets: what is reserved by the admission, corrected by the settlement, and taken back for calls that were never made.

use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinSet;
use toolgate_gate::ports::ledger::{
    Admission, Admit, BudgetUse, PageRequest, RecordDenial, SetTenantBudget, Settle, UpdatePrincipal,
};
use toolgate_gate::refusal::{Code, Kind};
use toolgate_model::constraint::Cost;
use toolgate_model::grant::Grant;
use toolgate_model::hook::ToolReturned;
use toolgate_model::invocation::{InvocationError, InvocationStatus};
use toolgate_model::principal::{PrincipalChanges, PrincipalId};
use toolgate_model::spending::{Account, Budget, Limit, Reservation};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::{Caller, DEADLINE, another, refusal_of};
use super::support::replicas::{Replicas, admitted, many};
use super::support::{detail, number};

contract!(
    a_call_without_budgets_writes_nothing,
    of_40_calls_at_two_replicas_exactly_those_that_fit_are_admitted,
    of_40_calls_at_two_replicas_no_millionth_too_much_is_reserved,
    the_calls_of_all_agents_of_a_tenant_share_its_budget,
    a_batch_admits_several_calls_of_one_account,
    calls_of_the_day_count_when_a_budget_is_set_and_those_before_a_total_do_not,
    a_call_in_flight_when_a_budget_is_set_is_settled_in_it,
    a_settlement_writes_the_difference_to_the_real_cost,
    a_call_that_was_never_sent_releases_what_it_reserved,
    a_call_that_was_cut_off_releases_what_it_reserved_and_is_charged_again_if_it_settles,
    an_admission_that_is_reverted_releases_what_it_reserved,
    a_day_begins_anew_and_a_total_does_not,
    a_call_that_settles_on_the_next_day_changes_only_the_total,
    an_unknown_cost_is_refused_where_cost_is_limited,
    warnings_and_ends_are_recorded_once_in_a_period,
    a_call_that_was_decided_before_a_budget_was_set_is_stale,
    accounts_of_coordinators_are_reserved_like_any_other,
    a_reported_call_counts_and_is_refused_beyond_the_budget,
);

fn budget(value: Value) -> Option<Budget> {
    Some(serde_json::from_value(value).unwrap())
}

async fn set(caller: &Caller, agent: &PrincipalId, budget: Option<Budget>) {
    let principal = caller.registered(agent).await.unwrap();
    let command = UpdatePrincipal {
        audit: caller.tenant.audit(),
        id: agent.clone(),
        expected_revision: principal.revision,
        changes: PrincipalChanges { budget: Some(budget), ..PrincipalChanges::default() },
        unresolved: Vec::new(),
    };
    caller.tenant.ledger.update_principal(command).await.unwrap();
}

async fn set_of_tenant(caller: &Caller, budget: Option<Budget>) {
    let command = SetTenantBudget { audit: caller.tenant.audit(), tenant: caller.tenant.id.clone(), budget };
    caller.tenant.ledger.set_tenant_budget(command).await.unwrap();
}

/// An agent with this budget at two replicas, and a grant.
async fn limited(fixture: &LedgerFixture, value: Value) -> (Replicas, Grant) {
    let replicas = Replicas::of(fixture).await;
    let grant = replicas.here().grant(None).await;
    set(replicas.here(), &grant.agent, budget(value)).await;
    (replicas, grant)
}

async fn costing(caller: &Caller, grant: &Grant, micros: u64) -> Admit {
    let mut call = caller.call(grant).await;
    call.invocation.cost = Cost::from_micros(micros);
    call
}

async fn made(caller: &Caller, grant: &Grant, micros: u64) -> Admit {
    let call = costing(caller, grant, micros).await;
    assert_eq!(caller.send(call.clone()).await, Admission::Admitted);
    call
}

async fn accounts(caller: &Caller) -> Vec<BudgetUse> {
    let (ledger, tenant) = (&caller.tenant.ledger, &caller.tenant.id);
    ledger.budgets(tenant, None, caller.tenant.now(), PageRequest::first(PageRequest::LIMIT)).await.unwrap().items
}

/// The calls and the cost of an account.
async fn used(caller: &Caller, account: &Account) -> (u64, u64) {
    let found = accounts(caller).await.into_iter().find(|budget| budget.account == *account).unwrap();
    (found.used.calls, found.used.cost)
}

fn day(grant: &Grant) -> Account {
    Account::Agent(grant.agent.clone())
}

fn total(grant: &Grant) -> Account {
    Account::AgentTotal(grant.agent.clone())
}

async fn settled(caller: &Caller, call: &Admit, micros: Option<u64>) {
    let mut settle = Settle { reserved: call.invocation.cost, ..caller.settlement(call, "{}") };
    settle.stored_result = None;
    settle.accounts = call.reservations.iter().map(|one| (one.account.clone(), 0)).collect();
    match micros {
        Some(micros) => settle.invocation.cost = Cost::from_micros(micros),
        None => (settle.never_sent, settle.invocation.cost) = (true, Cost::from_micros(0)),
    }
    caller.tenant.ledger.settle(Arc::new(settle)).await.unwrap();
}

async fn a_call_without_budgets_writes_nothing(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let call = made(&caller, &grant, 5).await;
    settled(&caller, &call, Some(3)).await;
    let sql = format!("SELECT COUNT(*) FROM spending WHERE tenant = '{}'", caller.tenant.id);
    assert_eq!(number(fixture, &sql).await, 0);
}

async fn of_40_calls_at_two_replicas_exactly_those_that_fit_are_admitted(fixture: &LedgerFixture) {
    let (replicas, grant) = limited(fixture, json!({"calls_per_day": 7, "calls_total": 100})).await;
    let call = replicas.here().call(&grant).await;
    let outcomes = replicas.send(many(&call, 40)).await;
    assert_eq!(admitted(&outcomes).len(), 7);
    for (_, outcome) in outcomes.into_iter().filter(|(_, outcome)| *outcome != Admission::Admitted) {
        let refusal = refusal_of(outcome, Code::BudgetExceeded);
        assert_eq!(refusal.kind(), Kind::TooMany);
        assert_eq!(detail(&refusal, "limit_calls"), json!(7));
        assert_eq!(detail(&refusal, "remaining_calls"), json!(0));
        assert!(detail(&refusal, "retry_after_seconds").as_u64().unwrap() <= 86_400);
    }
    assert_eq!(used(replicas.here(), &day(&grant)).await.0, 7);
    assert_eq!(used(&replicas.0[1], &total(&grant)).await.0, 7);
}

async fn of_40_calls_at_two_replicas_no_millionth_too_much_is_reserved(fixture: &LedgerFixture) {
    let (replicas, grant) = limited(fixture, json!({"cost_total_usd": 0.000_099})).await;
    let call = costing(replicas.here(), &grant, 10).await;
    let outcomes = replicas.send(many(&call, 40)).await;
    assert_eq!(admitted(&outcomes).len(), 9);
    for (_, outcome) in outcomes.into_iter().filter(|(_, outcome)| *outcome != Admission::Admitted) {
        let refusal = refusal_of(outcome, Code::BudgetExceeded);
        assert_eq!(refusal.kind(), Kind::Forbidden, "waiting does not help");
        assert_eq!(detail(&refusal, "retry_after_seconds"), Value::Null);
        assert_eq!(detail(&refusal, "remaining_cost_usd"), json!(0.000_009));
    }
    let last = costing(replicas.here(), &grant, 9).await;
    assert_eq!(replicas.0[1].send(last).await, Admission::Admitted, "what remains can be used");
    assert_eq!(used(replicas.here(), &total(&grant)).await, (10, 99));
}

async fn the_calls_of_all_agents_of_a_tenant_share_its_budget(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let worker = Caller::of(&replicas.here().tenant, "worker").await;
    set_of_tenant(replicas.here(), budget(json!({"calls_per_day": 5}))).await;
    let grants = [replicas.here().grant(None).await, worker.grant(None).await];
    let mut calls = JoinSet::new();
    for number in 0..30 {
        let (caller, grant) = (replicas.turn(number).clone(), grants[number / 2 % 2].clone());
        calls.spawn(async move { caller.admit(&grant).await });
    }
    let outcomes = calls.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Admission::Admitted).count(), 5);
    assert_eq!(used(replicas.here(), &Account::Tenant).await.0, 5);
    set_of_tenant(replicas.here(), None).await;
    assert_eq!(replicas.here().admit(&grants[0]).await, Admission::Admitted);
    assert_eq!(accounts(replicas.here()).await, []);
}

async fn a_batch_admits_several_calls_of_one_account(fixture: &LedgerFixture) {
    let (replicas, grant) = limited(fixture, json!({"calls_per_day": 64})).await;
    let call = replicas.here().call(&grant).await;
    let sent = many(&call, 64).into_iter().map(|call| replicas.here().send(call));
    let outcomes = futures_util::future::join_all(sent).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Admission::Admitted));
    refusal_of(replicas.here().send(another(&call)).await, Code::BudgetExceeded);
}

async fn calls_of_the_day_count_when_a_budget_is_set_and_those_before_a_total_do_not(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    for _ in 0..3 {
        let call = made(&caller, &grant, 10).await;
        settled(&caller, &call, Some(10)).await;
    }
    set(&caller, &grant.agent, budget(json!({"calls_per_day": 4, "calls_total": 2}))).await;
    assert_eq!(used(&caller, &day(&grant)).await, (3, 30));
    assert_eq!(used(&caller, &total(&grant)).await, (0, 0));
    made(&caller, &grant, 10).await;
    refusal_of(caller.admit(&grant).await, Code::BudgetExceeded);
    // Another limit keeps what was used; one that is set again counts anew.
    set(&caller, &grant.agent, budget(json!({"calls_per_day": 9, "calls_total": 5}))).await;
    assert_eq!(used(&caller, &total(&grant)).await, (1, 10));
    set(&caller, &grant.agent, None).await;
    made(&caller, &grant, 10).await;
    set(&caller, &grant.agent, budget(json!({"calls_per_day": 9, "calls_total": 5}))).await;
    assert_eq!(used(&caller, &day(&grant)).await, (5, 50));
    assert_eq!(used(&caller, &total(&grant)).await, (0, 0));
}

async fn a_call_in_flight_when_a_budget_is_set_is_settled_in_it(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let (dearer, never) = (made(&caller, &grant, 10).await, made(&caller, &grant, 100).await);
    for value in [json!({"calls_per_day": 9}), json!({"calls_per_day": 8})] {
        set(&caller, &grant.agent, None).await;
        set(&caller, &grant.agent, budget(value)).await;
        assert_eq!(used(&caller, &day(&grant)).await, (2, 110));
    }
    settled(&caller, &dearer, Some(7)).await;
    settled(&caller, &never, None).await;
    assert_eq!(used(&caller, &day(&grant)).await, (1, 7));
}

async fn a_settlement_writes_the_difference_to_the_real_cost(fixture: &LedgerFixture) {
    let (replicas, grant) = limited(fixture, json!({"cost_per_day_usd": 0.0001, "cost_total_usd": 1})).await;
    let caller = replicas.here();
    let call = made(caller, &grant, 100).await;
    refusal_of(caller.send(costing(caller, &grant, 1).await).await, Code::BudgetExceeded);
    settled(&replicas.0[1], &call, Some(30)).await;
    assert_eq!(used(caller, &day(&grant)).await, (1, 30));
    assert_eq!(used(caller, &total(&grant)).await, (1, 30));
    assert_eq!(caller.record(call.invocation.id).await.unwrap().cost, Cost::from_micros(30));
    made(caller, &grant, 70).await;
    refusal_of(caller.send(costing(caller, &grant, 1).await).await, Code::BudgetExceeded);
}

async fn a_call_that_was_never_sent_releases_what_it_reserved(fixture: &LedgerFixture) {
    let (replicas, grant) = limited(fixture, json!({"calls_per_day": 1, "cost_total_usd": 0.000_01})).await;
    let caller = replicas.here();
    let call = made(caller, &grant, 10).await;
    refusal_of(caller.admit(&grant).await, Code::BudgetExceeded);
    settled(caller, &call, None).await;
    assert_eq!(used(caller, &day(&grant)).await, (0, 0));
    assert_eq!(used(caller, &total(&grant)).await, (0, 0));
    made(&replicas.0[1], &grant, 10).await;
}

async fn a_call_that_was_cut_off_releases_what_it_reserved_and_is_charged_again_if_it_settles(fixture: &LedgerFixture) {
    let (replicas, grant) = limited(fixture, json!({"calls_total": 2, "cost_total_usd": 1})).await;
    let caller = replicas.here();
    caller.tenant.ledger.close_calls(caller.tenant.now()).await.unwrap();
    let (lost, late) = (made(caller, &grant, 10).await, made(caller, &grant, 20).await);
    refusal_of(caller.admit(&grant).await, Code::BudgetExceeded);
    caller.tenant.wait(DEADLINE + 1);
    assert_eq!(caller.tenant.ledger.close_calls(caller.tenant.now()).await.unwrap(), 2);
    assert_eq!(used(caller, &total(&grant)).await, (0, 0));
    assert_eq!(caller.record(lost.invocation.id).await.unwrap().cost, None, "nobody knows");
    settled(caller, &late, Some(15)).await;
    assert_eq!(used(caller, &total(&grant)).await, (1, 15));
}

async fn an_admission_that_is_reverted_releases_what_it_reserved(fixture: &LedgerFixture) {
    let (replicas, grant) = limited(fixture, json!({"calls_per_day": 1})).await;
    let caller = replicas.here();
    let call = made(caller, &grant, 10).await;
    let error = InvocationError { code: "LEDGER_UNAVAILABLE".to_owned(), reason: "no reply".to_owned() };
    let mut invocation = call.invocation.clone();
    (invocation.status, invocation.error) = (InvocationStatus::Denied, Some(error.clone()));
    let denial = RecordDenial {
        audit: caller.tenant.audit_of(&caller.agent),
        stage: "admit",
        returned: ToolReturned::error(&invocation, "LEDGER_UNAVAILABLE", "refused".to_owned(), None),
        invocation,
        error,
        about_authority: false,
        decision: None,
        detached: None,
    };
    caller.tenant.ledger.record_denial(denial).await.unwrap();
    assert_eq!(used(caller, &day(&grant)).await, (0, 0));
    made(caller, &grant, 10).await;
}

async fn a_day_begins_anew_and_a_total_does_not(fixture: &LedgerFixture) {
    let (replicas, grant) = limited(fixture, json!({"calls_per_day": 2, "calls_total": 3})).await;
    let caller = replicas.here();
    for _ in 0..2 {
        made(caller, &grant, 1).await;
    }
    refusal_of(caller.admit(&grant).await, Code::BudgetExceeded);
    caller.tenant.wait(24 * 3600);
    assert_eq!(used(caller, &day(&grant)).await, (0, 0));
    made(caller, &grant, 1).await;
    let refusal = refusal_of(replicas.0[1].admit(&grant).await, Code::BudgetExceeded);
    assert_eq!(detail(&refusal, "period"), json!("total"));
}

async fn a_call_that_settles_on_the_next_day_changes_only_the_total(fixture: &LedgerFixture) {
    let (replicas, grant) = limited(fixture, json!({"calls_per_day": 2, "calls_total": 3})).await;
    let caller = replicas.here();
    let call = made(caller, &grant, 10).await;
    caller.tenant.wait(24 * 3600);
    made(caller, &grant, 1).await;
    settled(caller, &call, None).await;
    assert_eq!(used(caller, &day(&grant)).await, (1, 1));
    assert_eq!(used(caller, &total(&grant)).await, (1, 1));
}

async fn an_unknown_cost_is_refused_where_cost_is_limited(fixture: &LedgerFixture) {
    let (replicas, grant) = limited(fixture, json!({"cost_per_day_usd": 1})).await;
    let caller = replicas.here();
    let mut call = caller.call(&grant).await;
    call.invocation.cost = None;
    let refusal = refusal_of(caller.send(call.clone()).await, Code::BudgetExceeded);
    assert_eq!(refusal.kind(), Kind::Forbidden);
    set(caller, &grant.agent, budget(json!({"calls_per_day": 1}))).await;
    let mut call = caller.call(&grant).await;
    call.invocation.cost = None;
    assert_eq!(caller.send(call).await, Admission::Admitted);
}

async fn warnings_and_ends_are_recorded_once_in_a_period(fixture: &LedgerFixture) {
    let (replicas, grant) = limited(fixture, json!({"calls_per_day": 5, "warn_at_percent": 60})).await;
    let caller = replicas.here();
    for expected in 1..=2 {
        let call = caller.call(&grant).await;
        assert_eq!(admitted(&replicas.send(many(&call, 12)).await).len(), 5);
        let (warned, ended) =
            (caller.tenant.events_of("budget.warned").await, caller.tenant.events_of("budget.exhausted").await);
        assert_eq!((warned.len(), ended.len()), (expected, expected));
        let data = &warned.last().unwrap()["data"];
        assert_eq!((&data["calls"], &data["limit_calls"]), (&json!(3), &json!(5)));
        assert_eq!((&data["account"], &data["account_id"]), (&json!("agent"), &json!(grant.agent)));
        assert_eq!(ended.last().unwrap()["data"]["calls"], json!(5));
        caller.tenant.wait(24 * 3600);
    }
}

async fn a_call_that_was_decided_before_a_budget_was_set_is_stale(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let caller = replicas.here();
    let grant = caller.grant(None).await;
    let before = caller.call(&grant).await;
    set(caller, &grant.agent, budget(json!({"calls_per_day": 1}))).await;
    assert_eq!(replicas.0[1].send(another(&before)).await, Admission::Stale);
    let before = caller.call(&grant).await;
    set_of_tenant(caller, budget(json!({"calls_per_day": 1}))).await;
    assert_eq!(replicas.0[1].send(another(&before)).await, Admission::Stale);
    assert_eq!(caller.admit(&grant).await, Admission::Admitted);
}

async fn accounts_of_coordinators_are_reserved_like_any_other(fixture: &LedgerFixture) {
    let replicas = Replicas::of(fixture).await;
    let grant = replicas.here().grant(None).await;
    let limit = Limit { max_calls: Some(3), max_cost: Cost::from_micros(1_000), warn_at_percent: 80 };
    let account = Account::Coordinator("coord_1".to_owned());
    let mut call = costing(replicas.here(), &grant, 100).await;
    call.reservations.push(Reservation { account, limit });
    let outcomes = replicas.send(many(&call, 20)).await;
    assert_eq!(admitted(&outcomes).len(), 3);
    let sql = format!("SELECT cost FROM spending WHERE tenant = '{}'", replicas.here().tenant.id);
    assert_eq!(number(fixture, &sql).await, 300);
    let refusal = refusal_of(replicas.here().send(another(&call)).await, Code::BudgetExceeded);
    assert_eq!((refusal.kind(), detail(&refusal, "account_id")), (Kind::Forbidden, json!("coord_1")));
}

async fn a_reported_call_counts_and_is_refused_beyond_the_budget(fixture: &LedgerFixture) {
    let (replicas, grant) = limited(fixture, json!({"calls_per_day": 1})).await;
    let caller = replicas.here();
    let report = async || {
        let mut invocation = caller.invocation(&grant);
        (invocation.status, invocation.reported) = (InvocationStatus::Success, true);
        let report = caller.report(&grant, invocation).await;
        caller.tenant.ledger.report_invocation(report).await
    };
    report().await.unwrap();
    assert_eq!(used(caller, &day(&grant)).await.0, 1);
    assert_eq!(report().await.unwrap_err().code(), Code::BudgetExceeded);
    refusal_of(caller.admit(&grant).await, Code::BudgetExceeded);
}
