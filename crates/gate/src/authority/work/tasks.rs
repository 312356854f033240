//! Tasks.

use toolgate_model::id::{IntentId, PlanId, TaskId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;
use toolgate_model::work::limits::{
    ATTEMPTS, DEPENDENCIES, DOCUMENT_BYTES, LONGEST_TASK, NAMES, REQUIREMENTS, TASKS, TEXT_BYTES,
};
use toolgate_model::work::{RequirementReport, Task, TaskDetails, TaskStatus};

use super::{WorkAdministration, invalid, require_line, require_size, require_text};
use crate::identify::Caller;
use crate::ports::ledger::{
    ChangeTask, CheckTask, ClaimTask, CreateTask, Page, PageRequest, TaskChanged, TaskChanges, TaskFilter, Viewer,
};
use crate::refusal::Refusal;

/// A task to create.
pub struct NewTask {
    pub plan: Option<PlanId>,
    pub details: TaskDetails,
    pub depends_on: Vec<TaskId>,
    /// Positions of other new tasks in the same request that it depends on.
    pub depends_on_new: Vec<usize>,
    pub assigned_agent: Option<PrincipalId>,
    pub timeout_seconds: Option<u64>,
    pub deadline: Option<Timestamp>,
    pub max_attempts: u32,
}

impl WorkAdministration {
    pub async fn create_task(&self, caller: &Caller, intent: IntentId, new: NewTask) -> Result<TaskChanged, Refusal> {
        let created = self.create_tasks(caller, intent, vec![new]).await?;
        created.into_iter().next().ok_or_else(|| Refusal::no_intent(intent))
    }

    /// Creates tasks of one intent, all or none.
    pub async fn create_tasks(
        &self,
        caller: &Caller,
        intent: IntentId,
        new: Vec<NewTask>,
    ) -> Result<Vec<TaskChanged>, Refusal> {
        if u32::try_from(new.len()).map_or(true, |count| count > TASKS) {
            return Err(invalid("tasks", &format!("at most {TASKS} tasks can be created at once")));
        }
        let audit = caller.mandate(self.clock.now());
        let ids = new.iter().map(|_| self.ids.make(audit.time(), TaskId::new));
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        let mut tasks = Vec::with_capacity(new.len());
        for (id, new) in ids.iter().zip(new) {
            require_valid(&new, audit.time())?;
            let mut depends_on = new.depends_on;
            for position in new.depends_on_new {
                depends_on.push(*ids.get(position).ok_or_else(|| invalid("depends_on", "there is no such task"))?);
            }
            depends_on.sort_unstable();
            depends_on.dedup();
            tasks.push(Task {
                id: *id,
                tenant: audit.tenant().clone(),
                intent,
                plan: new.plan,
                version: 1,
                status: TaskStatus::Pending,
                assigned_agent: new.assigned_agent,
                lease: None,
                depends_on,
                blocks: Vec::new(),
                attempt: 1,
                max_attempts: new.max_attempts,
                timeout_seconds: new.timeout_seconds,
                deadline: new.deadline,
                details: new.details,
                created_by: audit.actor().clone(),
                created_at: audit.time(),
                started_at: None,
                completed_at: None,
                due: None,
            });
        }
        self.tasks.create_tasks(CreateTask { audit, intent, tasks }).await
    }

    pub async fn task(&self, caller: &Caller, id: TaskId) -> Result<Task, Refusal> {
        let found = self.tasks.task(caller.tenant(), id, &Viewer::of(caller)).await?;
        found.ok_or_else(|| Refusal::no_task(id))
    }

    pub async fn tasks(
        &self,
        caller: &Caller,
        intent: IntentId,
        filter: TaskFilter,
        page: PageRequest,
    ) -> Result<Page<Task>, Refusal> {
        let found = self.tasks.tasks(caller.tenant(), intent, &Viewer::of(caller), filter, page).await?;
        found.ok_or_else(|| Refusal::no_intent(intent))
    }

    pub async fn change_task(
        &self,
        caller: &Caller,
        id: TaskId,
        expected_version: u64,
        changes: TaskChanges,
    ) -> Result<TaskChanged, Refusal> {
        require_size("output", &changes.output, DOCUMENT_BYTES)?;
        require_size("metadata", &changes.metadata, DOCUMENT_BYTES)?;
        require_size("artifacts", &changes.artifacts, DOCUMENT_BYTES)?;
        let texts = [
            ("error", &changes.error, TEXT_BYTES),
            ("blocked_reason", &changes.blocked_reason, TEXT_BYTES),
            ("description", &changes.description, DOCUMENT_BYTES),
        ];
        for (path, text, limit) in texts {
            text.as_ref().map_or(Ok(()), |text| require_text(path, text, limit))?;
        }
        if let Some(name) = &changes.name {
            require_line("name", name)?;
        }
        if let (Some(TaskStatus::Claimed), Some(Some(agent))) = (changes.status, &changes.assigned_agent) {
            caller.require_acting_for(agent)?;
        }
        let audit = caller.mandate(self.clock.now());
        self.tasks.change_task(ChangeTask { audit, id, expected_version, changes }).await
    }

    /// Claims a task for the caller, or for an agent that it may act for.
    pub async fn claim_task(
        &self,
        caller: &Caller,
        id: TaskId,
        agent: Option<PrincipalId>,
        expected_version: Option<u64>,
    ) -> Result<TaskChanged, Refusal> {
        let agent = agent.unwrap_or_else(|| caller.id().clone());
        caller.require_acting_for(&agent)?;
        let audit = caller.mandate(self.clock.now());
        self.tasks.claim_task(ClaimTask { audit, id, agent, expected_version }).await
    }

    /// Whether an agent meets what a task requires. For another agent only those who direct the task may ask; for
    /// the assigned agent every participant may.
    pub async fn check_task(
        &self,
        caller: &Caller,
        id: TaskId,
        agent: Option<PrincipalId>,
    ) -> Result<RequirementReport, Refusal> {
        let agent = agent.unwrap_or_else(|| caller.id().clone());
        let viewer = Viewer::of(caller);
        if agent != *caller.id() && viewer != Viewer::Everything {
            let task = self.task(caller, id).await?;
            if task.assigned_agent.as_ref() != Some(&agent) {
                caller.require_acting_for(&agent)?;
            }
        }
        let query = CheckTask { tenant: caller.tenant().clone(), viewer, id, agent, now: self.clock.now() };
        self.tasks.check_task(query).await?.ok_or_else(|| Refusal::no_task(id))
    }
}

/// Checks a task by itself, wherever it is declared.
pub(in crate::authority) fn require_valid(new: &NewTask, now: Timestamp) -> Result<(), Refusal> {
    let details = &new.details;
    require_line("name", &details.name)?;
    if let Some(description) = &details.description {
        require_text("description", description, DOCUMENT_BYTES)?;
    }
    require_size("input", &details.input, DOCUMENT_BYTES)?;
    require_size("output", &details.output, DOCUMENT_BYTES)?;
    require_size("metadata", &details.metadata, DOCUMENT_BYTES)?;
    for (path, names) in [("artifacts", &details.artifacts), ("capabilities_required", &details.capabilities_required)]
    {
        if names.len() > NAMES {
            return Err(invalid(path, &format!("`{path}` must have at most {NAMES} entries")));
        }
        names.iter().try_for_each(|name| require_line(path, name))?;
    }
    if details.requires_tools.len() > REQUIREMENTS {
        return Err(invalid("requires_tools", &format!("`requires_tools` must have at most {REQUIREMENTS} entries")));
    }
    if new.depends_on.len() + new.depends_on_new.len() > DEPENDENCIES {
        return Err(invalid("depends_on", &format!("`depends_on` must have at most {DEPENDENCIES} tasks")));
    }
    if !(1..=ATTEMPTS).contains(&new.max_attempts) {
        return Err(invalid("max_attempts", &format!("`max_attempts` must be between 1 and {ATTEMPTS}")));
    }
    let longest = LONGEST_TASK.as_secs();
    if new.timeout_seconds.is_some_and(|seconds| seconds == 0 || seconds > longest) {
        return Err(invalid("timeout_seconds", &format!("`timeout_seconds` must be between 1 and {longest}")));
    }
    if new.deadline.is_some_and(|deadline| deadline <= now || deadline > now.plus(LONGEST_TASK.saturating_mul(10))) {
        return Err(invalid("deadline", "`deadline` must be in the future, and at most ten years from now"));
    }
    Ok(())
}
