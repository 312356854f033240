//! Coordinated work, in the terms of OpenIntent: intents, their plans and tasks, leases, coordinators with guardrails,
//! and costs. Pure rules: what a task may become, which grants meet its requirements, which context a call may claim.

pub use self::binding::{AgentWork, BindingError, BoundContext, RunningTask};
pub use self::coordinator::{Coordinator, CoordinatorKind, CoordinatorStatus};
pub use self::cost::{CostEntry, CostKind, CostSummary, dollars};
pub use self::dependencies::{DependencyError, check_dependencies};
pub use self::guardrails::{GuardrailError, Guardrails};
pub use self::intent::{Intent, IntentChange, IntentStatus, Participant, StatePatch, StatePatchError};
pub use self::intent_event::{IntentEvent, IntentEventDetails, IntentEventKind};
pub use self::lease::{Lease, LeaseScope, LeaseStatus};
pub use self::plan::{OnFailure, Plan, PlanDetails, PlanState};
pub use self::requirement::{HeldAccess, MissingAccess, RequirementReport, ToolRequirement, match_requirements};
pub use self::task::{Task, TaskDetails, TaskPriority};
pub use self::task_status::{TaskStatus, TransitionError};
pub use self::text_choice::UnknownChoice;

mod binding;
mod coordinator;
mod cost;
mod dependencies;
mod guardrails;
mod intent;
mod intent_event;
mod lease;
pub mod limits;
mod plan;
mod requirement;
mod task;
mod task_status;
mod text_choice;

#[cfg(test)]
mod tests;
