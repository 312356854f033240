//! Random admissions at two replicas, settlements with other real costs, calls that are never sent, deaths of the gate and
//! changes of the day, on the ledger and on plain sums side by side: no cap is ever exceeded, and the sums agree.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use toolgate_gate::ports::ledger::{Admission, Admit, PageRequest, SetTenantBudget, Settle, UpdatePrincipal};
use toolgate_gate::refusal::Code;
use toolgate_model::constraint::Cost;
use toolgate_model::grant::Grant;
use toolgate_model::principal::PrincipalChanges;
use toolgate_model::spending::{Account, Budget, Limit, Reservation, Used};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::{Caller, DEADLINE, refusal_of};

const DAY: i64 = 24 * 3_600_000;

#[derive(Debug, Clone)]
enum Step {
    /// This many concurrent calls of the agent with this number, in turn at both replicas, which may cost this much each.
    Call { agent: usize, count: usize, cost: u64 },
    /// The oldest call in flight ends, with this share of what it may cost; `None` if it was never sent.
    Settle(Option<u64>),
    /// Everything in flight is cut off.
    Die,
    /// The next day begins.
    NextDay,
}

/// The budgets of two agents and of the tenant, a coordinator's, and the steps.
type Story = ([Option<Budget>; 3], Option<Limit>, Vec<Step>);

fn budgets() -> impl Strategy<Value = Option<Budget>> {
    let calls = || prop_oneof![1 => Just(None), 2 => (0..6_u64).prop_map(Some)];
    let cost = || prop_oneof![1 => Just(None), 2 => (0..60_u64).prop_map(Cost::from_micros)];
    (calls(), cost(), calls(), cost()).prop_map(|(calls_per_day, cost_per_day, calls_total, cost_total)| {
        let budget = Budget { calls_per_day, cost_per_day, calls_total, cost_total, ..Budget::unlimited() };
        (budget.daily().is_some() || budget.total().is_some()).then_some(budget)
    })
}

fn stories() -> impl Strategy<Value = Story> {
    let call = (0..2_usize, 1..5_usize, 0..20_u64).prop_map(|(agent, count, cost)| Step::Call { agent, count, cost });
    let settle = prop_oneof![3 => (0..=100_u64).prop_map(Some), 1 => Just(None)].prop_map(Step::Settle);
    let step = prop_oneof![6 => call, 5 => settle, 1 => Just(Step::Die), 1 => Just(Step::NextDay)];
    let limit =
        |(calls, cost)| Limit { max_calls: Some(calls), max_cost: Cost::from_micros(cost), warn_at_percent: 80 };
    let coordinator = prop::option::of((0..9_u64, 0..90_u64).prop_map(limit));
    ([budgets(), budgets(), budgets()], coordinator, prop::collection::vec(step, 1..24))
}

#[test]
fn on_sqlite_no_cap_is_ever_exceeded() {
    play(48, LedgerFixture::sqlite);
}

#[test]
fn on_postgres_no_cap_is_ever_exceeded() {
    play(16, LedgerFixture::postgres);
}

fn play(cases: u32, open: impl AsyncFn() -> LedgerFixture) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let fixture = runtime.block_on(open());
    let config = Config { cases, max_shrink_iters: 256, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&stories(), |(budgets, coordinator, steps)| {
        runtime.block_on(async {
            let mut game = Game::begin(&fixture, budgets, coordinator).await;
            for step in &steps {
                game.play(step).await?;
                game.check().await?;
            }
            Ok(())
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// An account with its cap, and what should have been used of it.
struct Expected {
    account: Account,
    limit: Limit,
    used: Used,
}

struct InFlight {
    call: Admit,
    /// The numbers of its accounts.
    accounts: Vec<usize>,
    day: i64,
}

struct Game {
    /// The agents at both replicas, with a grant each.
    agents: [([Caller; 2], Grant); 2],
    coordinator: Option<Limit>,
    expected: Vec<Expected>,
    in_flight: Vec<InFlight>,
}

impl Game {
    async fn begin(fixture: &LedgerFixture, budgets: [Option<Budget>; 3], coordinator: Option<Limit>) -> Self {
        let caller = Caller::new(fixture).await;
        // After the first close since opening, which on SQLite treats every running call as left over.
        caller.tenant.ledger.close_calls(caller.tenant.now()).await.unwrap();
        let worker = Caller::of(&caller.tenant, "worker").await;
        let mut agents = Vec::new();
        let mut expected = Vec::new();
        for (caller, budget) in [caller, worker].into_iter().zip(budgets) {
            let grant = caller.grant(None).await;
            let command = UpdatePrincipal {
                audit: caller.tenant.audit(),
                id: grant.agent.clone(),
                expected_revision: caller.registered(&grant.agent).await.unwrap().revision,
                changes: PrincipalChanges { budget: Some(budget), ..PrincipalChanges::default() },
                unresolved: Vec::new(),
            };
            caller.tenant.ledger.update_principal(command).await.unwrap();
            expected.extend(budget.map(|budget| budget.of_agent(&grant.agent)).into_iter().flatten());
            let there = caller.at_replica(fixture).await;
            agents.push(([caller, there], grant));
        }
        let tenant = &agents[0].0[0].tenant;
        let audit = tenant.audit();
        let command = SetTenantBudget { audit, tenant: tenant.id.clone(), budget: budgets[2] };
        tenant.ledger.set_tenant_budget(command).await.unwrap();
        expected.extend(budgets[2].map(|budget| budget.of_tenant()).into_iter().flatten());
        let of_coordinator = coordinator.map(|limit| Reservation { account: Self::account(), limit });
        let expected = expected.into_iter().chain(of_coordinator);
        let expected =
            expected.map(|Reservation { account, limit }| Expected { account, limit, used: Used::default() });
        let agents: [([Caller; 2], Grant); 2] = agents.try_into().map_err(|_| "two agents").unwrap();
        Self { agents, coordinator, expected: expected.collect(), in_flight: Vec::new() }
    }

    fn account() -> Account {
        Account::Coordinator("coord_1".to_owned())
    }

    fn here(&self) -> &Caller {
        &self.agents[0].0[0]
    }

    fn today(&self) -> i64 {
        self.here().tenant.now().as_millis().div_euclid(DAY)
    }

    async fn play(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Call { agent, count, cost } => return self.call(*agent, *count, *cost).await,
            Step::Settle(share) if !self.in_flight.is_empty() => self.settle(*share).await,
            Step::Settle(_) => {}
            Step::Die => self.die().await,
            Step::NextDay => {
                self.here().tenant.wait(24 * 3600);
                for expected in self.expected.iter_mut().filter(|expected| expected.account.is_daily()) {
                    expected.used = Used::default();
                }
            }
        }
        Ok(())
    }

    async fn call(&mut self, agent: usize, count: usize, cost: u64) -> Result<(), TestCaseError> {
        let (callers, grant) = &self.agents[agent];
        let mut calls = Vec::new();
        for number in 0..count {
            let mut call = callers[number % 2].call(grant).await;
            call.invocation.cost = Cost::from_micros(cost);
            call.reservations.extend(self.coordinator.map(|limit| Reservation { account: Self::account(), limit }));
            calls.push(call);
        }
        let sent = calls.iter().enumerate().map(|(number, call)| callers[number % 2].send(call.clone()));
        let outcomes = futures_util::future::join_all(sent).await;
        let (day, mut admitted) = (self.today(), 0);
        for (call, outcome) in calls.into_iter().zip(outcomes) {
            if outcome != Admission::Admitted {
                refusal_of(outcome, Code::BudgetExceeded);
                continue;
            }
            admitted += 1;
            let reserved: Vec<_> = call.reservations.iter().map(|one| one.account.clone()).collect();
            let of_call = |expected: &Expected| reserved.contains(&expected.account);
            let accounts: Vec<usize> =
                self.expected.iter().enumerate().filter(|(_, one)| of_call(one)).map(|(number, _)| number).collect();
            for number in &accounts {
                let used = &mut self.expected[*number].used;
                *used = Used { calls: used.calls + 1, cost: used.cost + cost };
            }
            self.in_flight.push(InFlight { call, accounts, day });
        }
        // All calls are alike, so one was refused only if the next one would not have fitted either.
        if admitted < count {
            let probe = &self.agents[agent].1.agent;
            let concerned = self.expected.iter().filter(|one| match &one.account {
                Account::Agent(of) | Account::AgentTotal(of) => of == probe,
                _ => true,
            });
            let full = concerned.filter(|one| one.limit.excess(one.used, Cost::from_micros(cost)).is_some());
            prop_assert!(full.count() > 0, "a call was refused that had room");
        }
        Ok(())
    }

    async fn settle(&mut self, share: Option<u64>) {
        let InFlight { call, accounts, day } = self.in_flight.remove(0);
        let reserved = call.invocation.cost.unwrap().micros();
        let caller = self.here();
        let mut settle = Settle { stored_result: None, ..caller.settlement(&call, "") };
        let real = share.map_or(0, |share| reserved * share / 100);
        settle.never_sent = share.is_none();
        settle.invocation.cost = Cost::from_micros(real);
        caller.tenant.ledger.settle(Arc::new(settle)).await.unwrap();
        self.take_back(&accounts, day, u64::from(share.is_none()), reserved - real);
    }

    async fn die(&mut self) {
        // The deadlines pass within the day, so that days change only where a step says so.
        let tenant = &self.here().tenant;
        let millis = tenant.now().as_millis().rem_euclid(DAY);
        if millis + i64::try_from(DEADLINE + 1).unwrap() * 1000 >= DAY {
            return;
        }
        tenant.wait(DEADLINE + 1);
        let closed = tenant.ledger.close_calls(tenant.now()).await.unwrap();
        // Those of earlier stories, in other tenants, are among them.
        assert!(usize::try_from(closed).unwrap() >= self.in_flight.len());
        for InFlight { call, accounts, day } in std::mem::take(&mut self.in_flight) {
            self.take_back(&accounts, day, 1, call.invocation.cost.unwrap().micros());
        }
    }

    fn take_back(&mut self, accounts: &[usize], day: i64, calls: u64, cost: u64) {
        let today = self.today();
        for number in accounts {
            let Expected { account, used, .. } = &mut self.expected[*number];
            if !account.is_daily() || day == today {
                *used = Used { calls: used.calls - calls, cost: used.cost - cost };
            }
        }
    }

    async fn check(&self) -> Result<(), TestCaseError> {
        let tenant = &self.here().tenant;
        let page = PageRequest::first(PageRequest::LIMIT);
        let found = tenant.ledger.budgets(&tenant.id, None, tenant.now(), page).await.unwrap().items;
        for expected in &self.expected {
            let Used { calls, cost } = expected.used;
            prop_assert!(expected.limit.max_calls.is_none_or(|max| calls <= max), "{:?}", expected.account);
            prop_assert!(expected.limit.max_cost.is_none_or(|max| cost <= max.micros()), "{:?}", expected.account);
            if let Some(found) = found.iter().find(|found| found.account == expected.account) {
                prop_assert_eq!(found.used, expected.used, "{:?}", expected.account);
            } else {
                prop_assert!(matches!(expected.account, Account::Coordinator(_)), "{:?}", expected.account);
            }
        }
        Ok(())
    }
}
