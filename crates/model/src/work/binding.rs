//! Which context a call may claim. Ids that have the form of this gate's ids are checked against its ledger: a task must
//! be running and assigned to the agent of the call, and the agent must take part in an intent. Other texts are ids of
//! another coordination system; they are only compared with the binding of the grant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use thiserror::Error;

use super::coordinator::Coordinator;
use super::limits::READ_WITH_GRANTS;
use crate::context::{ContextId, GrantContext};
use crate::id::{IntentId, PlanId, TaskId};
use crate::time::Timestamp;

/// A task that an agent works on now.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningTask {
    /// The whole context: intent, plan if any, and task.
    pub context: GrantContext,
    /// When the agent loses it.
    pub due: Option<Timestamp>,
}

/// The work of one agent, as its calls see it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentWork {
    /// The running tasks that are assigned to it.
    pub running: BTreeMap<TaskId, RunningTask>,
    /// The open intents that it takes part in.
    pub intents: BTreeSet<IntentId>,
    /// The plans of these intents.
    pub plans: BTreeMap<PlanId, IntentId>,
    /// The coordinators that it is itself and that have not ended.
    pub coordinators: Vec<Arc<Coordinator>>,
}

/// The context of a call after its check.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundContext {
    /// As given, completed by what the ledger knows.
    pub context: GrantContext,
    /// The task of this gate that the call belongs to.
    pub task: Option<TaskId>,
    /// Until when the call may be admitted.
    pub until: Option<Timestamp>,
}

/// A part of the context that the call may not claim: unknown, of another tenant, not running, or not the agent's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`context.{part}` names {what} of this agent")]
pub struct BindingError {
    pub part: &'static str,
    what: &'static str,
}

const TASK: BindingError = BindingError { part: "task_id", what: "no running task" };
const PLAN: BindingError = BindingError { part: "plan_id", what: "no plan" };
const INTENT: BindingError = BindingError { part: "intent_id", what: "no open intent" };

impl GrantContext {
    /// Whether a part has the form of this gate's ids.
    pub fn names_work(&self) -> bool {
        task_of(self).is_some() || plan_of(self).is_some() || intent_of(self).is_some()
    }

    /// Whether everything that is bound here has the same value in `other`.
    pub fn allows(&self, other: &Self) -> bool {
        let fits = |own: &Option<ContextId>, other: &Option<ContextId>| own.is_none() || own == other;
        fits(&self.intent_id, &other.intent_id)
            && fits(&self.plan_id, &other.plan_id)
            && fits(&self.task_id, &other.task_id)
    }

    /// The parts that are not ids of this gate.
    pub fn without_work(&self) -> Self {
        Self {
            intent_id: self.intent_id.clone().filter(|_| intent_of(self).is_none()),
            plan_id: self.plan_id.clone().filter(|_| plan_of(self).is_none()),
            task_id: self.task_id.clone().filter(|_| task_of(self).is_none()),
        }
    }

    /// The task, if it is one of this gate.
    pub fn task(&self) -> Option<TaskId> {
        task_of(self)
    }

    /// The plan, if it is one of this gate.
    pub fn plan(&self) -> Option<PlanId> {
        plan_of(self)
    }

    /// The intent, if it is one of this gate.
    pub fn intent(&self) -> Option<IntentId> {
        intent_of(self)
    }
}

fn task_of(context: &GrantContext) -> Option<TaskId> {
    context.task_id.as_ref().and_then(|id| TaskId::parse(id.as_str()).ok())
}

fn plan_of(context: &GrantContext) -> Option<PlanId> {
    context.plan_id.as_ref().and_then(|id| PlanId::parse(id.as_str()).ok())
}

fn intent_of(context: &GrantContext) -> Option<IntentId> {
    context.intent_id.as_ref().and_then(|id| IntentId::parse(id.as_str()).ok())
}

impl AgentWork {
    /// No work at all.
    pub const NONE: Self =
        Self { running: BTreeMap::new(), intents: BTreeSet::new(), plans: BTreeMap::new(), coordinators: Vec::new() };

    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.intents.is_empty() && self.plans.is_empty() && self.coordinators.is_empty()
    }

    /// Whether there may be more work than this.
    pub fn is_cut(&self) -> bool {
        let is_full = |count: usize| u32::try_from(count).map_or(true, |count| count >= READ_WITH_GRANTS);
        [self.running.len(), self.intents.len(), self.plans.len()].into_iter().any(is_full)
    }

    /// Checks and completes the context of a call.
    pub fn bind(&self, given: &GrantContext, now: Timestamp) -> Result<BoundContext, BindingError> {
        if let Some(task) = task_of(given) {
            let found = self.running.get(&task).filter(|running| running.due.is_none_or(|due| due > now));
            let running = found.ok_or(TASK)?;
            if let Some(part) = given.first_widening(&running.context) {
                return Err(if part == "plan_id" { PLAN } else { INTENT });
            }
            // A task without a plan belongs to no plan at all.
            if given.plan_id.is_some() && running.context.plan_id.is_none() {
                return Err(PLAN);
            }
            return Ok(BoundContext { context: running.context.clone(), task: Some(task), until: running.due });
        }
        let mut context = given.clone();
        if let Some(plan) = plan_of(given) {
            let intent = self.plans.get(&plan).ok_or(PLAN)?;
            let intent = ContextId::parse(&intent.to_string()).map_err(|_| INTENT)?;
            if given.intent_id.as_ref().is_some_and(|given| *given != intent) {
                return Err(INTENT);
            }
            context.intent_id = Some(intent);
        } else if let Some(intent) = intent_of(given)
            && !self.intents.contains(&intent)
        {
            return Err(INTENT);
        }
        Ok(BoundContext { context, task: None, until: None })
    }
}
