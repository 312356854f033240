//! Coordinated work: intents, plans, tasks, leases, coordinators, costs. Every agent may create intents and take part in
//! those that it is assigned to; the ledger checks in the transaction of each change who directs the intent.

use std::sync::Arc;

use toolgate_model::id::{CoordinatorId, IntentId, LeaseId, PlanId, TaskId};
use toolgate_model::text::check_line;

use crate::authority::audit::AuditReader;
use crate::gate::{Ports, Shared};
use crate::ids::Ids;
use crate::ports::clock::Clock;
use crate::ports::ledger::{AuditLog, Coordinators, Costs, Grants, Intents, Leases, Plans, Services, Tasks};
use crate::refusal::{Code, Refusal};

pub use self::coordinators::NewCoordinator;
pub use self::costs::NewCost;
pub use self::estimate::{PlanEstimate, TaskEstimate};
pub use self::intents::NewIntent;
pub use self::leases::NewLease;
pub use self::plans::NewPlan;
pub use self::tasks::NewTask;

mod coordinators;
mod costs;
mod estimate;
mod intents;
mod leases;
mod plans;
pub(in crate::authority) mod tasks;
mod timeline;

/// The administration of coordinated work.
pub struct WorkAdministration {
    intents: Arc<dyn Intents>,
    plans: Arc<dyn Plans>,
    tasks: Arc<dyn Tasks>,
    leases: Arc<dyn Leases>,
    coordinators: Arc<dyn Coordinators>,
    costs: Arc<dyn Costs>,
    grants: Arc<dyn Grants>,
    services: Arc<dyn Services>,
    log: Arc<dyn AuditLog>,
    audit: Arc<AuditReader>,
    clock: Arc<dyn Clock>,
    ids: Arc<Ids>,
}

impl WorkAdministration {
    pub(crate) fn new(ports: &Ports, shared: &Shared) -> Self {
        Self {
            intents: ports.ledger.clone(),
            plans: ports.ledger.clone(),
            tasks: ports.ledger.clone(),
            leases: ports.ledger.clone(),
            coordinators: ports.ledger.clone(),
            costs: ports.ledger.clone(),
            grants: ports.ledger.clone(),
            services: ports.ledger.clone(),
            log: ports.ledger.clone(),
            audit: Arc::clone(&shared.audit),
            clock: Arc::clone(&ports.clock),
            ids: Arc::clone(&shared.ids),
        }
    }
}

/// Refusals for objects that do not exist, or that the caller may not see.
impl Refusal {
    pub fn no_intent(id: IntentId) -> Self {
        Self::new(Code::IntentNotFound, format!("there is no intent {id}")).with("intent_id", id)
    }

    pub fn no_plan(id: PlanId) -> Self {
        Self::new(Code::PlanNotFound, format!("there is no plan {id}")).with("plan_id", id)
    }

    pub fn no_task(id: TaskId) -> Self {
        Self::new(Code::TaskNotFound, format!("there is no task {id}")).with("task_id", id)
    }

    pub fn no_lease(id: LeaseId) -> Self {
        Self::new(Code::LeaseNotFound, format!("there is no lease {id}")).with("lease_id", id)
    }

    pub fn no_coordinator(id: CoordinatorId) -> Self {
        Self::new(Code::CoordinatorNotFound, format!("there is no coordinator {id}")).with("coordinator_id", id)
    }
}

/// Refuses JSON above the limit.
fn require_size(path: &str, value: &impl serde::Serialize, limit: usize) -> Result<(), Refusal> {
    let length = serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len());
    if length <= limit {
        return Ok(());
    }
    Err(invalid(path, &format!("`{path}` has {length} bytes of JSON, and at most {limit} are kept")))
}

/// Refuses a text above the limit, or an empty one.
fn require_text(path: &str, text: &str, limit: usize) -> Result<(), Refusal> {
    match text.len() {
        0 => Err(invalid(path, &format!("`{path}` must not be empty"))),
        length if length > limit => {
            Err(invalid(path, &format!("`{path}` must be at most {limit} bytes long, has {length}")))
        }
        _ => Ok(()),
    }
}

/// Refuses what is not one line of printable characters.
fn require_line(path: &str, text: &str) -> Result<(), Refusal> {
    check_line(text, 256).map_err(|error| invalid(path, &format!("`{path}` {error}")))
}

fn invalid(path: &str, reason: &str) -> Refusal {
    Refusal::new(Code::InvalidField, reason).with("path", path)
}
