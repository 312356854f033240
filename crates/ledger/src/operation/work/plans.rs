//! Plans.

use std::collections::BTreeSet;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{ChangePlan, CreatePlan, Mandate, PlanChanges, Plans, Viewer};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, WorkPlanChanged, WorkPlanCreated};
use toolgate_model::id::{IntentId, PlanId, TaskId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::work::limits::{DOCUMENT_BYTES, PLANS};
use toolgate_model::work::{IntentEventDetails, IntentEventKind, LeaseStatus, Plan, PlanState, TaskStatus};

use super::access::{HeldIntent, hold, sees};
use super::endings::{Leaving, move_task};
use super::tasks::require_plan_size;
use super::{Noted, number, require_below, require_version, task_rows};
use crate::ledger::{Engine, SqlLedger};
use crate::operation::Operation;
use crate::operation::administration::{Administration, Entitled};
use crate::sql::{Failure, Row, SqlError, json_text};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Plans for SqlLedger<E> {
    async fn create_plan(&self, command: CreatePlan) -> Result<Plan, Refusal> {
        self.engine.write(command).await
    }

    async fn plan(&self, tenant: &TenantId, id: PlanId, viewer: &Viewer) -> Result<Option<Plan>, Refusal> {
        self.engine.read(ReadPlan { tenant: tenant.clone(), id, viewer: viewer.clone() }).await
    }

    async fn plans(&self, tenant: &TenantId, intent: IntentId, viewer: &Viewer) -> Result<Option<Vec<Plan>>, Refusal> {
        self.engine.read(ListPlans { tenant: tenant.clone(), intent, viewer: viewer.clone() }).await
    }

    async fn change_plan(&self, command: ChangePlan) -> Result<Plan, Refusal> {
        self.engine.write(command).await
    }
}

const COLUMNS: &str = "id, tenant, intent, version, state, details, created_by, created_at, updated_at";

fn read(row: &Row) -> Result<Plan, SqlError> {
    Ok(Plan {
        id: row.parsed(0, PlanId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        intent: row.parsed(2, IntentId::parse)?,
        version: row.count(3)?,
        state: row.parsed(4, PlanState::parse)?,
        tasks: Vec::new(),
        details: row.json(5)?,
        created_by: row.parsed(6, PrincipalId::parse)?,
        created_at: row.time(7)?,
        updated_at: row.time(8)?,
    })
}

/// Reads a plan of an intent with its tasks.
pub async fn one<T: Transaction>(transaction: &mut T, intent: IntentId, id: PlanId) -> Result<Option<Plan>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM plans WHERE id = $1 AND intent = $2");
    let Some(row) = transaction.query_optional(&sql, values![id, intent]).await? else { return Ok(None) };
    let mut plan = read(&row)?;
    plan.tasks = tasks_of(transaction, id).await?;
    Ok(Some(plan))
}

async fn tasks_of<T: Transaction>(transaction: &mut T, plan: PlanId) -> Result<Vec<TaskId>, Failure> {
    let rows = transaction.query("SELECT id FROM tasks WHERE plan = $1 ORDER BY id", values![plan]).await?;
    Ok(rows.iter().map(|row| row.parsed(0, TaskId::parse)).collect::<Result<_, _>>()?)
}

pub fn require_open(plan: &Plan) -> Result<(), Refusal> {
    if !plan.state.has_ended() {
        return Ok(());
    }
    let reason = format!("plan {} is {}; it does not change any more", plan.id, plan.state);
    Err(Refusal::new(Code::PlanStateInvalid, reason).with("plan_id", plan.id).with("state", plan.state))
}

impl Administration for CreatePlan {
    type Output = Plan;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Plan, Failure> {
        let held = hold(transaction, by, self.plan.intent).await?;
        held.require_directed()?;
        held.require_open()?;
        let count = "SELECT COUNT(*) FROM plans WHERE intent = $1";
        let count = number(transaction, count, values![self.plan.intent]).await?;
        require_below(count, PLANS, "plans of the intent")?;
        let mut plan = Plan { tasks: Vec::new(), ..self.plan.clone() };
        let sql = format!("INSERT INTO plans ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)");
        let parameters = values![
            plan.id,
            &plan.tenant,
            plan.intent,
            plan.version,
            plan.state.as_str(),
            json_text(&plan.details)?,
            &plan.created_by,
            plan.created_at,
            plan.updated_at,
        ];
        transaction.execute(&sql, parameters).await?;
        set_tasks(transaction, &held, &mut plan, &self.plan.tasks).await?;
        let payload = EventPayload::WorkPlanCreated(WorkPlanCreated {
            intent_id: plan.intent,
            plan_id: plan.id,
            tasks: u64::try_from(plan.tasks.len()).unwrap_or(u64::MAX),
        });
        let details = IntentEventDetails {
            plan_id: Some(plan.id),
            to: Some(plan.state.to_string()),
            ..IntentEventDetails::default()
        };
        Noted::new(payload, IntentEventKind::PlanCreated, details).record(transaction, by, plan.intent).await?;
        Ok(plan)
    }
}

/// Makes these the tasks of the plan. Only tasks that nobody has begun join or leave a plan.
async fn set_tasks<T: Transaction>(
    transaction: &mut T,
    held: &HeldIntent,
    plan: &mut Plan,
    wanted: &[TaskId],
) -> Result<(), Failure> {
    let wanted: BTreeSet<TaskId> = wanted.iter().copied().collect();
    let present: BTreeSet<TaskId> = plan.tasks.iter().copied().collect();
    require_plan_size(held, plan.id, u64::try_from(wanted.len()).unwrap_or(u64::MAX))?;
    for id in wanted.symmetric_difference(&present) {
        let task = task_rows::one(transaction, plan.intent, *id).await?;
        let mut task = task.ok_or_else(|| Refusal::no_task(*id))?;
        if !matches!(task.status, TaskStatus::Pending | TaskStatus::Ready) || task.assigned_agent.is_some() {
            let reason = format!("task {id} is {} or assigned; only unassigned tasks can change plans", task.status);
            return Err(Refusal::new(Code::TaskStateInvalid, reason).with("task_id", id).into());
        }
        if task.plan.is_some_and(|other| other != plan.id) {
            let reason = format!("task {id} belongs to another plan");
            return Err(Refusal::new(Code::TaskStateInvalid, reason).with("task_id", id).into());
        }
        task.plan = wanted.contains(id).then_some(plan.id);
        task_rows::update(transaction, &mut task).await?;
    }
    plan.tasks = wanted.into_iter().collect();
    Ok(())
}

impl Administration for ChangePlan {
    type Output = Plan;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Plan, Failure> {
        let sql = "SELECT intent FROM plans WHERE id = $1 AND tenant = $2";
        let row = transaction.query_optional(sql, values![self.id, &by.tenant]).await?;
        let intent = row.ok_or_else(|| Refusal::no_plan(self.id))?.parsed(0, IntentId::parse)?;
        let missing = |failure| match failure {
            Failure::Refused(refusal) if refusal.code() == Code::IntentNotFound => {
                Failure::from(Refusal::no_plan(self.id))
            }
            other => other,
        };
        let held = hold(transaction, by, intent).await.map_err(missing)?;
        held.require_directed()?;
        held.require_open()?;
        let mut plan = one(transaction, intent, self.id).await?.ok_or_else(|| Refusal::no_plan(self.id))?;
        require_version(&format!("plan {}", plan.id), plan.version, self.expected_version)?;
        require_open(&plan)?;
        let from = plan.state;
        if let Some(to) = self.changes.state.filter(|to| *to != from) {
            if !from.next().contains(&to) {
                let reason = format!("a plan that is {from} cannot become {to}");
                return Err(Refusal::new(Code::PlanStateInvalid, reason)
                    .with("plan_id", plan.id)
                    .with("state", from)
                    .with("allowed", from.next())
                    .into());
            }
            plan.state = to;
        }
        if let Some(tasks) = &self.changes.tasks {
            set_tasks(transaction, &held, &mut plan, tasks).await?;
        }
        apply(&mut plan, &self.changes)?;
        plan.version += 1;
        plan.updated_at = by.time;
        let sql = "UPDATE plans SET version = $1, state = $2, details = $3, updated_at = $4 WHERE id = $5";
        let details = json_text(&plan.details)?;
        let parameters = values![plan.version, plan.state.as_str(), details, by.time, plan.id];
        transaction.execute(sql, parameters).await?;
        note_changed(transaction, by, &plan, from).await?;
        if plan.state == PlanState::Cancelled {
            cancel_tasks(transaction, by, &plan).await?;
        }
        Ok(plan)
    }
}

fn apply(plan: &mut Plan, changes: &PlanChanges) -> Result<(), Refusal> {
    let changes = changes.clone();
    let details = &mut plan.details;
    details.checkpoints = changes.checkpoints.unwrap_or_else(|| std::mem::take(&mut details.checkpoints));
    details.conditions = changes.conditions.unwrap_or_else(|| std::mem::take(&mut details.conditions));
    details.on_failure = changes.on_failure.unwrap_or(details.on_failure);
    details.on_complete = changes.on_complete.unwrap_or_else(|| std::mem::take(&mut details.on_complete));
    details.metadata = changes.metadata.unwrap_or_else(|| std::mem::take(&mut details.metadata));
    let bytes = serde_json::to_vec(&details).map_or(usize::MAX, |bytes| bytes.len());
    if bytes > 2 * DOCUMENT_BYTES {
        let reason = format!("the plan would have {bytes} bytes of JSON; at most {} are kept", 2 * DOCUMENT_BYTES);
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "checkpoints"));
    }
    Ok(())
}

async fn note_changed<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    plan: &Plan,
    from: PlanState,
) -> Result<(), Failure> {
    let kind = match (from, plan.state) {
        (from, to) if from == to => None,
        (PlanState::Paused, PlanState::Active) => Some(IntentEventKind::PlanResumed),
        (_, PlanState::Active) => Some(IntentEventKind::PlanActivated),
        (_, PlanState::Paused) => Some(IntentEventKind::PlanPaused),
        (_, PlanState::Completed) => Some(IntentEventKind::PlanCompleted),
        // The client has no type for a cancelled plan.
        (_, PlanState::Failed | PlanState::Cancelled) => Some(IntentEventKind::PlanFailed),
        (_, PlanState::Draft) => None,
    };
    let payload = EventPayload::WorkPlanChanged(WorkPlanChanged {
        intent_id: plan.intent,
        plan_id: plan.id,
        state: plan.state,
        tasks: u64::try_from(plan.tasks.len()).unwrap_or(u64::MAX),
        version: plan.version,
    });
    let details = IntentEventDetails {
        from: Some(from.to_string()),
        plan_id: Some(plan.id),
        to: Some(plan.state.to_string()),
        version: Some(plan.version),
        ..IntentEventDetails::default()
    };
    Noted::new(payload, kind, details).record(transaction, by, plan.intent).await
}

async fn cancel_tasks<T: Transaction>(transaction: &mut T, by: &Entitled<'_>, plan: &Plan) -> Result<(), Failure> {
    let reason = format!("plan {} is cancelled", plan.id);
    let open = "plan = $1 AND status IN ('pending', 'ready', 'claimed', 'running', 'blocked')";
    for mut task in task_rows::matching(transaction, open, values![plan.id]).await? {
        let leaving = Leaving { reason: Some(&reason), lease: LeaseStatus::Revoked };
        move_task(transaction, by, &mut task, TaskStatus::Cancelled, leaving).await?;
    }
    Ok(())
}

struct ReadPlan {
    tenant: TenantId,
    id: PlanId,
    viewer: Viewer,
}

impl Operation for ReadPlan {
    type Output = Option<Plan>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Plan>, Failure> {
        let sql = "SELECT intent FROM plans WHERE id = $1 AND tenant = $2";
        let row = transaction.query_optional(sql, values![self.id, &self.tenant]).await?;
        let Some(row) = row else { return Ok(None) };
        let intent = row.parsed(0, IntentId::parse)?;
        if !sees(transaction, &self.tenant, intent, &self.viewer).await? {
            return Ok(None);
        }
        one(transaction, intent, self.id).await
    }
}

struct ListPlans {
    tenant: TenantId,
    intent: IntentId,
    viewer: Viewer,
}

impl Operation for ListPlans {
    type Output = Option<Vec<Plan>>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        if !sees(transaction, &self.tenant, self.intent, &self.viewer).await? {
            return Ok(None);
        }
        let sql = format!("SELECT {COLUMNS} FROM plans WHERE intent = $1 ORDER BY id");
        let rows = transaction.query(&sql, values![self.intent]).await?;
        let mut plans = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        for plan in &mut plans {
            plan.tasks = tasks_of(transaction, plan.id).await?;
        }
        Ok(Some(plans))
    }
}
