//! Coordinated work: intents, plans, tasks, leases, coordinators, costs.
//!
//! Every change checks in its transaction who makes it. Directing an intent (its state, plans, tasks and assignments)
//! takes its creator, a coordinator of it that may act, or the permission `tools.manage`. An object that the caller does
//! not take part in is reported as not existing.

use std::sync::Arc;

use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;

use crate::identify::Caller;

pub use self::coordinators::{ChangeCoordinator, CoordinatorChanges, Coordinators, CreateCoordinator, SendHeartbeat};
pub use self::costs::{CallCost, Costs, IntentCosts, RecordCost};
pub use self::intents::{
    AssignParticipant, ChangeIntent, CreateIntent, IntentEventFilter, IntentFilter, Intents, LogIntentEvent,
    RemoveParticipant,
};
pub use self::leases::{AcquireLease, EndLease, Leases, RenewLease};
pub use self::plans::{ChangePlan, CreatePlan, PlanChanges, Plans};
pub use self::tasks::{
    ChangeTask, CheckTask, ClaimTask, CreateTask, TaskChanged, TaskChanges, TaskFilter, Tasks, Undelegated,
};

mod coordinators;
mod costs;
mod intents;
mod leases;
mod plans;
mod tasks;

/// Whose view of the intents a read returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Viewer {
    /// All of them: a manager, an auditor, or the gate itself.
    Everything,
    /// Those that this principal takes part in: as creator, assigned agent, coordinator or its supervisor, or as
    /// assignee of a task.
    Participant(Arc<PrincipalId>),
}

impl Viewer {
    pub fn of(caller: &Caller) -> Self {
        if caller.may(Permission::ManageTools) || caller.may(Permission::ReadAudit) {
            Self::Everything
        } else {
            Self::Participant(Arc::new(caller.id().clone()))
        }
    }
}
