//! Plans.

use toolgate_model::id::{IntentId, PlanId, TaskId};
use toolgate_model::work::limits::{DOCUMENT_BYTES, TASKS};
use toolgate_model::work::{Plan, PlanDetails, PlanState};

use super::{WorkAdministration, invalid, require_line, require_size};
use crate::identify::Caller;
use crate::ports::ledger::{ChangePlan, CreatePlan, PlanChanges, Viewer};
use crate::refusal::Refusal;

/// A plan to create.
pub struct NewPlan {
    pub intent: IntentId,
    /// `draft` or `active`.
    pub state: PlanState,
    /// Tasks of the intent that have no plan.
    pub tasks: Vec<TaskId>,
    pub details: PlanDetails,
}

impl WorkAdministration {
    pub async fn create_plan(&self, caller: &Caller, new: NewPlan) -> Result<Plan, Refusal> {
        if !matches!(new.state, PlanState::Draft | PlanState::Active) {
            return Err(invalid("state", &format!("a plan cannot be created as {}", new.state)));
        }
        require_line("on_complete", &new.details.on_complete)?;
        require_size("plan", &new.details, DOCUMENT_BYTES)?;
        require_tasks(&new.tasks)?;
        let audit = caller.mandate(self.clock.now());
        let plan = Plan {
            id: self.ids.make(audit.time(), PlanId::new)?,
            tenant: audit.tenant().clone(),
            intent: new.intent,
            version: 1,
            state: new.state,
            tasks: new.tasks,
            details: new.details,
            created_by: audit.actor().clone(),
            created_at: audit.time(),
            updated_at: audit.time(),
        };
        self.plans.create_plan(CreatePlan { audit, plan }).await
    }

    pub async fn plan(&self, caller: &Caller, id: PlanId) -> Result<Plan, Refusal> {
        let found = self.plans.plan(caller.tenant(), id, &Viewer::of(caller)).await?;
        found.ok_or_else(|| Refusal::no_plan(id))
    }

    pub async fn plans(&self, caller: &Caller, intent: IntentId) -> Result<Vec<Plan>, Refusal> {
        let found = self.plans.plans(caller.tenant(), intent, &Viewer::of(caller)).await?;
        found.ok_or_else(|| Refusal::no_intent(intent))
    }

    pub async fn change_plan(
        &self,
        caller: &Caller,
        id: PlanId,
        expected_version: u64,
        changes: PlanChanges,
    ) -> Result<Plan, Refusal> {
        require_tasks(changes.tasks.as_deref().unwrap_or_default())?;
        require_size("checkpoints", &changes.checkpoints, DOCUMENT_BYTES)?;
        require_size("conditions", &changes.conditions, DOCUMENT_BYTES)?;
        require_size("metadata", &changes.metadata, DOCUMENT_BYTES)?;
        if let Some(on_complete) = &changes.on_complete {
            require_line("on_complete", on_complete)?;
        }
        let audit = caller.mandate(self.clock.now());
        self.plans.change_plan(ChangePlan { audit, id, expected_version, changes }).await
    }
}

fn require_tasks(tasks: &[TaskId]) -> Result<(), Refusal> {
    if u32::try_from(tasks.len()).is_ok_and(|count| count <= TASKS) {
        return Ok(());
    }
    Err(invalid("tasks", &format!("`tasks` must have at most {TASKS} tasks")))
}
