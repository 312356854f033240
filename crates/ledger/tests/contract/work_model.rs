//! Random sequences of everything that happens to tasks, played on the ledger and on a simple model side by side. No call is
//! ever admitted outside its running task or for another agent than its assignee, also if it was decided on before the
//! task changed; and nothing that was delegated for a task stays alive after it.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::json;
use toolgate_gate::ports::ledger::{Admission, Admit};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::grant::{Grant, GrantStatus};
use toolgate_model::id::{GrantId, TaskId};
use toolgate_model::work::{Task, TaskStatus};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::{Caller, another};
use super::support::work::Office;

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
    let result = runner.run(&prop::collection::vec(action(), 15..=40), |actions| {
        runtime.block_on(async {
            let mut game = Game::begin(&fixture).await;
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

/// One step. Tasks are picked by a number, counted from the newest; an agent is the worker or the helper.
#[derive(Debug, Clone)]
enum Action {
    /// A task that requires access, with a timeout, perhaps assigned at once.
    Create {
        assigned: Option<bool>,
        timeout: Option<u64>,
    },
    Assign(usize, Option<bool>),
    Claim(usize, bool),
    Move(usize, TaskStatus, Actor),
    /// A call decided on the present state.
    Call(usize, bool),
    /// A call that was decided on in an earlier step.
    Late(usize),
    Wait(u64),
    Sweep,
}

#[derive(Debug, Clone, Copy)]
enum Actor {
    Coordinator,
    Worker(bool),
}

fn action() -> impl Strategy<Value = Action> {
    let task = || prop_oneof![4 => Just(0_usize), 2 => Just(1), 1 => 2..5_usize];
    let actor = prop_oneof![2 => any::<bool>().prop_map(Actor::Worker), 1 => Just(Actor::Coordinator)];
    prop_oneof![
        5 => (any::<Option<bool>>(), select(vec![None, Some(30)]))
            .prop_map(|(assigned, timeout)| Action::Create { assigned, timeout }),
        4 => (task(), any::<Option<bool>>()).prop_map(|(task, agent)| Action::Assign(task, agent)),
        8 => (task(), any::<bool>()).prop_map(|(task, agent)| Action::Claim(task, agent)),
        14 => (task(), select(TaskStatus::ALL), actor).prop_map(|(task, status, actor)| Action::Move(task, status, actor)),
        8 => (task(), select(vec![TaskStatus::Running, TaskStatus::Running, TaskStatus::Completed]), any::<bool>())
            .prop_map(|(task, status, agent)| Action::Move(task, status, Actor::Worker(agent))),
        12 => (task(), any::<bool>()).prop_map(|(task, agent)| Action::Call(task, agent)),
        8 => (0..6_usize).prop_map(Action::Late),
        3 => select(vec![1_u64, 20, 40]).prop_map(Action::Wait),
        2 => Just(Action::Sweep),
    ]
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
}

struct Game {
    office: Office,
    source: Grant,
    tasks: Vec<Known>,
    /// Calls as they were decided on, with the task and the agent.
    decided: Vec<(Admit, usize, bool)>,
}

impl Game {
    async fn begin(fixture: &LedgerFixture) -> Self {
        let office = Office::new(fixture).await;
        office.govern(json!({"auto_delegate": true})).await;
        let source = office.source().await;
        Self { office, source, tasks: Vec::new(), decided: Vec::new() }
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
        match action {
            Action::Create { assigned, timeout } => self.create(*assigned, *timeout).await?,
            Action::Assign(task, agent) => {
                let Some(task) = self.pick(*task) else { return Ok(()) };
                self.assign(task, *agent).await?;
            }
            Action::Claim(task, agent) => {
                let Some(task) = self.pick(*task) else { return Ok(()) };
                let done = self.office.claim(self.agent(*agent), self.tasks[task].id).await.map(drop);
                let expected = self.claim(task, *agent);
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
            Action::Call(task, agent) => {
                let Some(task) = self.pick(*task) else { return Ok(()) };
                self.call(task, *agent).await?;
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

    /// By the rules: ready, not another agent's, and with the access that an assignment alone gives.
    fn claim(&mut self, task: usize, agent: bool) -> Result<(), Code> {
        let known = &mut self.tasks[task];
        if known.status != TaskStatus::Ready || known.agent.is_some_and(|assigned| assigned != agent) {
            return Err(Code::TaskStateInvalid);
        }
        if known.agent != Some(agent) {
            return Err(Code::InsufficientToolAccess);
        }
        known.status = TaskStatus::Claimed;
        Ok(())
    }

    async fn change(&mut self, task: usize, status: TaskStatus, actor: Actor) -> Result<(), TestCaseError> {
        let caller = match actor {
            Actor::Coordinator => self.office.coordinator.clone(),
            Actor::Worker(helper) => self.agent(helper).clone(),
        };
        let done = self.office.move_to(&caller, self.tasks[task].id, status).await.map(drop);
        let expected = self.transition(task, status, actor);
        agree_on(done, expected)
    }

    fn transition(&mut self, task: usize, to: TaskStatus, actor: Actor) -> Result<(), Code> {
        use TaskStatus::{Blocked, Cancelled, Claimed, Completed, Failed, Pending, Ready, Running, Skipped};
        let from = self.tasks[task].status;
        if let (Claimed, Actor::Worker(agent), true) = (to, actor, from != Claimed) {
            return self.claim(task, agent);
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
    async fn call(&mut self, task: usize, agent: bool) -> Result<(), TestCaseError> {
        let caller = self.agent(agent).clone();
        let id = self.tasks[task].id;
        let Some((grant, _)) = self.tasks[task].grants.iter().rev().find(|(_, holder)| *holder == agent) else {
            return Ok(());
        };
        let held = caller.held_grant(*grant).await;
        let mut call = caller.call(held.lineage.grant()).await;
        call.invocation.context = held.effective.context.clone();
        let of_agent = &caller.tenant;
        let held = of_agent
            .ledger
            .held_grants(&of_agent.id, &caller.agent, of_agent.now(), toolgate_gate::ports::ledger::Freshness::Newest)
            .await
            .map_err(failed)?;
        let work = held.work.as_deref().cloned().unwrap_or_default();
        let bound = work.bind(&call.invocation.context, of_agent.now());
        prop_assert_eq!(bound.is_ok(), self.may_call(task, agent), "the decision on a call");
        let call = Admit { task: Some(id), ..call };
        // What the pipeline refuses never gets to the admission; one that is forged is not admitted either.
        let Ok(bound) = bound else { return self.send(Admit { generation: 0, ..call }, task, agent).await };
        let call = Admit { usable_until: [call.usable_until, bound.until].into_iter().flatten().min(), ..call };
        self.decided.push((call.clone(), task, agent));
        self.send(call, task, agent).await
    }

    async fn late(&mut self, number: usize) -> Result<(), TestCaseError> {
        let Some(newest) = self.decided.len().checked_sub(1) else { return Ok(()) };
        let (call, task, agent) = &self.decided[newest - number % self.decided.len()];
        let mut late = another(call);
        late.audit.time = self.office.tenant.now();
        let (task, agent) = (*task, *agent);
        let admitted = self.agent(agent).send(late).await == Admission::Admitted;
        prop_assert!(!admitted || self.may_call(task, agent), "a call was admitted outside its task");
        Ok(())
    }

    async fn send(&self, call: Admit, task: usize, agent: bool) -> Result<(), TestCaseError> {
        // Past its time a task is refused by the decision, and by the admission through `usable_until`.
        let admitted = self.agent(agent).send(call).await == Admission::Admitted;
        let is_running = self.tasks[task].status == TaskStatus::Running && self.tasks[task].agent == Some(agent);
        let expected = self.may_call(task, agent);
        prop_assert!(!admitted || is_running, "a call was admitted outside its task");
        prop_assert!(!expected || admitted, "a call of a running task was not admitted");
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
            for (grant, holder) in &known.grants {
                let standing = self.office.tenant.standing(*grant).await;
                let may_live = !known.status.has_ended() && known.agent == Some(*holder);
                prop_assert!(may_live || standing == GrantStatus::Revoked, "grant {} outlives task {}", grant, number);
            }
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
