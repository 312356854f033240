//! Random sequences of everything that happens to tasks and to what they cost, played on the ledger and on a simple model
//! side by side. No call is ever admitted outside its running task or for another agent than its assignee, also if it was
//! decided on before the task changed; no cap of the coordinator is ever exceeded; and nothing that was delegated for a
//! task, by the gate or by hand, stays alive after it, nor after its source or its intent.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use toolgate_gate::ports::ledger::{Admission, Admit, ChangeIntent, Freshness};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Cost;
use toolgate_model::grant::{Grant, GrantStatus};
use toolgate_model::id::{CoordinatorId, GrantId, TaskId};
use toolgate_model::spending::Used;
use toolgate_model::work::{IntentChange, IntentStatus, Task, TaskStatus};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use self::action::{Action, Actor, Caps, action, caps};
use super::support::calls::{Caller, DEADLINE, another};
use super::support::work::Office;

mod action;

#[test]
fn the_ledger_on_sqlite_keeps_calls_within_their_tasks() {
    agree(48, LedgerFixture::sqlite);
}

#[test]
fn the_ledger_on_postgres_keeps_calls_within_their_tasks() {
    agree(10, LedgerFixture::postgres);
}

fn agree<F: Future<Output = LedgerFixture>>(cases: u32, open: impl Fn() -> F) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fixture = runtime.block_on(open());
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&(caps(), prop::collection::vec(action(), 15..=40)), |(caps, actions)| {
        runtime.block_on(async {
            let mut game = Game::begin(&fixture, caps).await;
            for (step, action) in actions.iter().enumerate() {
                game.play(action)
                    .await
                    .map_err(|error| TestCaseError::fail(format!("step {step}, {action:?}: {error}")))?;
            }
            Ok(())
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// A task as the model knows it.
struct Known {
    id: TaskId,
    status: TaskStatus,
    /// Whether the worker has it, or the helper.
    agent: Option<bool>,
    attempt: u32,
    timeout: Option<u64>,
    started: Option<i64>,
    /// The grants that were delegated for it, with their agents.
    grants: Vec<(GrantId, bool)>,
    /// Those that were delegated by hand, which are not bound to who has the task.
    by_hand: Vec<(GrantId, bool)>,
}

struct Game {
    office: Office,
    source: Grant,
    tasks: Vec<Known>,
    /// Calls as they were decided on, with the task and the agent.
    decided: Vec<(Admit, usize, bool)>,
    coordinator: CoordinatorId,
    caps: Caps,
    used: Used,
    in_flight: Vec<(Admit, bool)>,
    /// Grants whose source was revoked.
    revoked: Vec<GrantId>,
    has_ended: bool,
}

impl Game {
    async fn begin(fixture: &LedgerFixture, caps: Caps) -> Self {
        let office = Office::new(fixture).await;
        // The first close since opening treats every running call as left over, on SQLite.
        office.tenant.ledger.close_calls(office.tenant.now()).await.unwrap();
        let coordinator = office.govern(caps.guardrails()).await.id;
        let source = office.source().await;
        Self {
            office,
            source,
            tasks: Vec::new(),
            decided: Vec::new(),
            coordinator,
            caps,
            used: Used::default(),
            in_flight: Vec::new(),
            revoked: Vec::new(),
            has_ended: false,
        }
    }

    fn agent(&self, helper: bool) -> &Caller {
        if helper { &self.office.helper } else { &self.office.worker }
    }

    fn pick(&self, number: usize) -> Option<usize> {
        self.tasks.len().checked_sub(1).map(|newest| newest - number % self.tasks.len())
    }

    fn now(&self) -> i64 {
        self.office.tenant.now().as_millis()
    }

    fn is_overdue(&self, task: usize) -> bool {
        let known = &self.tasks[task];
        let is_taken = matches!(known.status, TaskStatus::Claimed | TaskStatus::Running | TaskStatus::Blocked);
        let end =
            known.timeout.zip(known.started).map(|(seconds, started)| started + i64::try_from(seconds).unwrap() * 1000);
        is_taken && end.is_some_and(|end| end <= self.now())
    }

    async fn play(&mut self, action: &Action) -> Result<(), TestCaseError> {
        let changes_nothing = matches!(
            action,
            Action::Late(_) | Action::Settle(_) | Action::Die | Action::Wait(_) | Action::Sweep | Action::Call(..)
        );
        if self.has_ended && !changes_nothing {
            return Ok(());
        }
        match action {
            Action::Delegate(task, agent) => {
                let Some(task) = self.pick(*task) else { return Ok(()) };
                self.delegate(task, *agent).await?;
            }
            Action::RevokeSource => self.revoke_source().await?,
            Action::Settle(share) => self.settle(*share).await?,
            Action::Die => self.die().await?,
            Action::EndIntent => self.end().await?,
            Action::Create { assigned, timeout } => self.create(*assigned, *timeout).await?,
            Action::Assign(task, agent) => {
                let Some(task) = self.pick(*task) else { return Ok(()) };
                self.assign(task, *agent).await?;
            }
            Action::Claim(task, agent) => {
                let Some(task) = self.pick(*task) else { return Ok(()) };
                let has_access = self.has_access(task, *agent).await;
                let done = self.office.claim(self.agent(*agent), self.tasks[task].id).await.map(drop);
                let expected = self.claim(task, *agent, has_access);
                agree_on(done, expected)?;
            }
            Action::Move(task, status, actor) => {
                let Some(task) = self.pick(*task) else { return Ok(()) };
                let is_claim = *status == TaskStatus::Claimed && self.tasks[task].status != TaskStatus::Claimed;
                // The coordinator does not take tasks itself.
                if !(is_claim && matches!(actor, Actor::Coordinator)) {
                    self.change(task, *status, *actor).await?;
                }
            }
            Action::Call(task, agent, cost) => {
                let Some(task) = self.pick(*task) else { return Ok(()) };
                self.call(task, *agent, *cost).await?;
            }
            Action::Late(number) => self.late(*number).await?,
            Action::Wait(seconds) => self.office.tenant.wait(*seconds),
            Action::Sweep => {
                self.office.tenant.ledger.sweep_work(self.office.tenant.now()).await.map_err(failed)?;
                for task in 0..self.tasks.len() {
                    if self.is_overdue(task) {
                        self.tasks[task].status = TaskStatus::Failed;
                    }
                }
            }
        }
        self.compare().await
    }

    async fn create(&mut self, assigned: Option<bool>, timeout: Option<u64>) -> Result<(), TestCaseError> {
        let task = Task {
            assigned_agent: assigned.map(|agent| self.agent(agent).agent.clone()),
            timeout_seconds: timeout,
            max_attempts: 2,
            ..self.office.task_requiring(&self.source.service, &["charges.read"])
        };
        let created = self.office.store(task).await.map_err(failed)?;
        let grants = created.delegated.iter().map(|grant| (grant.id, assigned.unwrap())).collect();
        self.tasks.push(Known {
            id: created.task.id,
            status: TaskStatus::Ready,
            agent: assigned,
            attempt: 1,
            timeout,
            started: None,
            grants,
            by_hand: Vec::new(),
        });
        Ok(())
    }

    async fn assign(&mut self, task: usize, agent: Option<bool>) -> Result<(), TestCaseError> {
        let caller = agent.map(|agent| self.agent(agent).clone());
        let done = self.office.assign(self.tasks[task].id, caller.as_ref()).await;
        let known = &self.tasks[task];
        let stays = known.agent == agent;
        let may = stays || matches!(known.status, TaskStatus::Ready | TaskStatus::Claimed);
        let expected = if may { Ok(()) } else { Err(Code::TaskStateInvalid) };
        let delegated: Vec<_> = done.iter().flat_map(|done| &done.delegated).map(|grant| grant.id).collect();
        agree_on(done.map(drop), expected)?;
        if may && !stays {
            let known = &mut self.tasks[task];
            (known.status, known.agent, known.started) = (TaskStatus::Ready, agent, None);
            known.grants.extend(delegated.into_iter().map(|grant| (grant, agent.unwrap())));
        }
        Ok(())
    }

    /// Whether the agent holds a grant for the task that can be used now.
    async fn has_access(&self, task: usize, agent: bool) -> bool {
        self.usable(task, agent).await.is_some()
    }

    /// The newest of these grants.
    async fn usable(&self, task: usize, agent: bool) -> Option<GrantId> {
        let known = &self.tasks[task];
        for (grant, holder) in known.grants.iter().chain(&known.by_hand).rev() {
            if *holder == agent && self.office.tenant.standing(*grant).await == GrantStatus::Active {
                return Some(*grant);
            }
        }
        None
    }

    /// By the rules: ready, not another agent's, and with the access that only what was delegated for it gives.
    fn claim(&mut self, task: usize, agent: bool, has_access: bool) -> Result<(), Code> {
        let known = &mut self.tasks[task];
        if known.status != TaskStatus::Ready || known.agent.is_some_and(|assigned| assigned != agent) {
            return Err(Code::TaskStateInvalid);
        }
        if !has_access {
            return Err(Code::InsufficientToolAccess);
        }
        (known.status, known.agent) = (TaskStatus::Claimed, Some(agent));
        Ok(())
    }

    async fn delegate(&mut self, task: usize, agent: bool) -> Result<(), TestCaseError> {
        let tenant = self.office.tenant.clone();
        let mut command = tenant.delegation(&self.source, self.agent(agent).agent.as_str());
        command.request.context = self.office.now(self.tasks[task].id).await.context();
        let done = tenant.ledger.delegate_grant(command).await;
        let has_ended = self.tasks[task].status.has_ended();
        let grant = match done {
            Ok(grant) => grant,
            Err(refusal) => {
                prop_assert!(has_ended, "nothing could be delegated for a task: {refusal}");
                prop_assert_eq!(refusal.code(), Code::TaskStateInvalid);
                return Ok(());
            }
        };
        prop_assert!(!has_ended, "a grant was delegated for a task that has ended");
        let below = tenant.delegate(&grant, self.agent(!agent).agent.as_str()).await.map_err(failed)?;
        self.tasks[task].by_hand.extend([(grant.id, agent), (below.id, !agent)]);
        Ok(())
    }

    async fn revoke_source(&mut self) -> Result<(), TestCaseError> {
        self.office.tenant.revoke(self.source.id).await.map_err(failed)?;
        let delegated = self.tasks.iter().flat_map(|known| known.grants.iter().chain(&known.by_hand));
        self.revoked = delegated.map(|(grant, _)| *grant).collect();
        // For the same service, so that tasks that were created before can be assigned.
        let mut grant = self.source.clone();
        grant.id = self.office.tenant.new_grant(&self.office.tenant.credential().await, &grant.agent).id;
        self.source = self.office.tenant.store_grant(grant).await.map_err(failed)?;
        Ok(())
    }

    async fn settle(&mut self, share: Option<u64>) -> Result<(), TestCaseError> {
        if self.in_flight.is_empty() {
            return Ok(());
        }
        let (call, agent) = self.in_flight.remove(0);
        let reserved = call.invocation.cost.unwrap().micros();
        let caller = self.agent(agent);
        let mut settle = caller.settlement(&call, "");
        let real = share.map_or(0, |share| reserved * share / 100);
        settle.stored_result = None;
        settle.never_sent = share.is_none();
        settle.invocation.cost = Cost::from_micros(real);
        caller.tenant.ledger.settle(Arc::new(settle)).await.map_err(failed)?;
        let Used { calls, cost } = self.used;
        self.used = Used { calls: calls - u64::from(share.is_none()), cost: cost - (reserved - real) };
        Ok(())
    }

    async fn die(&mut self) -> Result<(), TestCaseError> {
        let tenant = &self.office.tenant;
        tenant.wait(DEADLINE + 1);
        tenant.ledger.close_calls(tenant.now()).await.map_err(failed)?;
        for (call, _) in std::mem::take(&mut self.in_flight) {
            let Used { calls, cost } = self.used;
            self.used = Used { calls: calls - 1, cost: cost - call.invocation.cost.unwrap().micros() };
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), TestCaseError> {
        let tenant = &self.office.tenant;
        let command = ChangeIntent {
            audit: tenant.audit(),
            id: self.office.intent,
            expected_version: 1,
            change: IntentChange::Status { status: IntentStatus::Completed, reason: None },
        };
        tenant.ledger.change_intent(command).await.map_err(failed)?;
        self.has_ended = true;
        for known in self.tasks.iter_mut().filter(|known| !known.status.has_ended()) {
            known.status = TaskStatus::Cancelled;
        }
        Ok(())
    }

    async fn change(&mut self, task: usize, status: TaskStatus, actor: Actor) -> Result<(), TestCaseError> {
        let caller = match actor {
            Actor::Coordinator => self.office.coordinator.clone(),
            Actor::Worker(helper) => self.agent(helper).clone(),
        };
        let has_access = match actor {
            Actor::Coordinator => false,
            Actor::Worker(agent) => self.has_access(task, agent).await,
        };
        let done = self.office.move_to(&caller, self.tasks[task].id, status).await.map(drop);
        let expected = self.transition(task, status, actor, has_access);
        agree_on(done, expected)
    }

    fn transition(&mut self, task: usize, to: TaskStatus, actor: Actor, has_access: bool) -> Result<(), Code> {
        use TaskStatus::{Blocked, Cancelled, Claimed, Completed, Failed, Pending, Ready, Running, Skipped};
        let from = self.tasks[task].status;
        if let (Claimed, Actor::Worker(agent), true) = (to, actor, from != Claimed) {
            return self.claim(task, agent, has_access);
        }
        let now = self.now();
        let known = &mut self.tasks[task];
        if let Actor::Worker(agent) = actor {
            let may = matches!(to, Ready | Running | Blocked | Completed | Failed) || to == from;
            if known.agent != Some(agent) || !may || (from == Failed && to == Ready) {
                return Err(Code::PermissionDenied);
            }
        }
        if to == from {
            return Ok(());
        }
        let allowed: &[TaskStatus] = match from {
            Ready | Pending => &[Cancelled, Skipped],
            Claimed => &[Running, Ready, Completed, Failed, Cancelled],
            Running => &[Blocked, Completed, Failed, Cancelled],
            Blocked => &[Running, Failed, Cancelled],
            Failed if known.attempt < 2 => &[Ready],
            Failed | Completed | Cancelled | Skipped => &[],
        };
        if !allowed.contains(&to) {
            return Err(Code::TaskStateInvalid);
        }
        if from == Failed {
            known.attempt += 1;
        }
        known.status = to;
        if to == Ready {
            (known.agent, known.started) = (None, None);
        }
        if to == Running {
            known.started.get_or_insert(now);
        }
        Ok(())
    }

    /// A call through any grant that the agent holds for the task, as the pipeline would decide on it.
    async fn call(&mut self, task: usize, agent: bool, cost: u64) -> Result<(), TestCaseError> {
        let caller = self.agent(agent).clone();
        let id = self.tasks[task].id;
        let usable = self.usable(task, agent).await;
        let known = &self.tasks[task];
        let held_before = known.grants.iter().chain(&known.by_hand).rev().find(|(_, holder)| *holder == agent);
        // Without a grant that can be used, one that could be used before.
        let Some(grant) = usable.or(held_before.map(|(grant, _)| *grant)) else { return Ok(()) };
        let held = caller.held_grant(grant).await;
        let mut call = caller.call(held.lineage.grant()).await;
        call.invocation.context = held.effective.context.clone();
        call.invocation.cost = Cost::from_micros(cost);
        let of_agent = &caller.tenant;
        let held = of_agent
            .ledger
            .held_grants(&of_agent.id, &caller.agent, of_agent.now(), Freshness::Newest)
            .await
            .map_err(failed)?;
        let work = held.work.as_deref().cloned().unwrap_or_default();
        let bound = work.bind(&call.invocation.context, of_agent.now());
        prop_assert_eq!(bound.is_ok(), self.may_call(task, agent), "the decision on a call");
        let named = of_agent.ledger.named_work(&of_agent.id, &caller.agent, &call.invocation.context).await;
        let named = named.map_err(failed)?.bind(&call.invocation.context, of_agent.now());
        prop_assert_eq!(&named, &bound, "the same, looked up by its id");
        // The pipeline sees no grant that has ended: whoever names one has decided on nothing that is current.
        let generation = if usable.is_some() { call.generation } else { 0 };
        let call = Admit { task: Some(id), generation, ..call };
        // What the pipeline refuses never gets to the admission; one that is forged is not admitted either.
        let may = self.may_call(task, agent) && usable.is_some() && self.caps.have_room(self.used, cost);
        let Ok(bound) = bound else { return self.send(Admit { generation: 0, ..call }, (task, agent), may).await };
        let call = Admit { usable_until: [call.usable_until, bound.until].into_iter().flatten().min(), ..call };
        self.decided.push((call.clone(), task, agent));
        self.send(call, (task, agent), may).await
    }

    /// A call that was decided on before may be admitted; it never has to be.
    async fn late(&mut self, number: usize) -> Result<(), TestCaseError> {
        let Some(newest) = self.decided.len().checked_sub(1) else { return Ok(()) };
        let (call, task, agent) = &self.decided[newest - number % self.decided.len()];
        let mut late = another(call);
        late.audit.time = self.office.tenant.now();
        late.deadline = self.office.tenant.later(DEADLINE);
        let (task, agent) = (*task, *agent);
        self.send(late, (task, agent), false).await
    }

    /// Has a call admitted, which must be if it is `expected`.
    async fn send(&mut self, call: Admit, (task, agent): (usize, bool), expected: bool) -> Result<(), TestCaseError> {
        let grant = call.invocation.grant.unwrap();
        let is_live = self.office.tenant.standing(grant).await == GrantStatus::Active;
        // Past its time a task is refused by the decision, and by the admission through `usable_until`.
        let admitted = self.agent(agent).send(call.clone()).await == Admission::Admitted;
        prop_assert!(!admitted || self.may_call(task, agent), "a call was admitted outside its task");
        prop_assert!(!admitted || is_live, "a call was admitted through a grant that has ended");
        prop_assert!(!expected || admitted, "a call of a running task was not admitted");
        if admitted {
            let cost = call.invocation.cost.unwrap().micros();
            prop_assert!(self.caps.have_room(self.used, cost), "a cap was exceeded");
            self.used = Used { calls: self.used.calls + 1, cost: self.used.cost + cost };
            self.in_flight.push((call, agent));
        }
        Ok(())
    }

    fn may_call(&self, task: usize, agent: bool) -> bool {
        let known = &self.tasks[task];
        known.status == TaskStatus::Running && known.agent == Some(agent) && !self.is_overdue(task)
    }

    /// Tasks are as the model knows them, and grants for them live only while their agents have them.
    async fn compare(&self) -> Result<(), TestCaseError> {
        for (number, known) in self.tasks.iter().enumerate() {
            let task = self.office.now(known.id).await;
            prop_assert_eq!((task.status, task.attempt), (known.status, known.attempt), "task {}", number);
            let agent = known.agent.map(|agent| self.agent(agent).agent.clone());
            prop_assert_eq!(task.assigned_agent, agent, "the agent of task {}", number);
            let by_gate = known.grants.iter().map(|(grant, holder)| (grant, known.agent == Some(*holder)));
            for (grant, may_live) in by_gate.chain(known.by_hand.iter().map(|(grant, _)| (grant, true))) {
                let may_live = may_live && !known.status.has_ended() && !self.revoked.contains(grant);
                let standing = self.office.tenant.standing(*grant).await;
                prop_assert!(may_live || standing == GrantStatus::Revoked, "grant {} outlives task {}", grant, number);
            }
        }
        let (ledger, tenant) = (&self.office.tenant.ledger, &self.office.tenant.id);
        let used = ledger.coordinator_use(tenant, vec![self.coordinator]).await.map_err(failed)?[&self.coordinator];
        if self.caps.calls.is_some() || self.caps.cost.is_some() {
            prop_assert_eq!(used, self.used, "what the coordinator has used");
        }
        Ok(())
    }
}

fn agree_on(done: Result<(), Refusal>, expected: Result<(), Code>) -> Result<(), TestCaseError> {
    prop_assert_eq!(done.map_err(|refusal| refusal.code()), expected);
    Ok(())
}

fn failed(refusal: Refusal) -> TestCaseError {
    TestCaseError::fail(format!("{}: {refusal}", refusal.code().as_str()))
}
