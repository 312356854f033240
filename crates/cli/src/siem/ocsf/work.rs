//! Coordinated work: intents, plans, tasks, leases and coordinators are entities. All members of an event are kept.

use serde_json::{Map, Value, json};
use toolgate_model::event::{Event, EventPayload};

use super::class::{Activity, Class, Outcome, Severity};
use super::{Mapped, object};

const CREATE: Activity = Activity::new(1, "Create");
const UPDATE: Activity = Activity::new(3, "Update");
const DELETE: Activity = Activity::new(4, "Delete");

/// The line of an event about coordinated work; `None` for any other event.
pub fn map(event: &Event) -> Option<Mapped> {
    let (activity, kind, uid) = match &event.payload {
        EventPayload::WorkAgentAssigned(assigned) => (UPDATE, "intent", assigned.intent_id.to_string()),
        EventPayload::WorkAgentUnassigned(unassigned) => (UPDATE, "intent", unassigned.intent_id.to_string()),
        EventPayload::WorkCoordinatorChanged(changed) => {
            let activity = if changed.status.has_ended() { DELETE } else { UPDATE };
            (activity, "coordinator", changed.coordinator_id.to_string())
        }
        EventPayload::WorkCoordinatorCreated(created) => (CREATE, "coordinator", created.coordinator_id.to_string()),
        EventPayload::WorkCostRecorded(recorded) => (CREATE, "cost", recorded.cost_id.to_string()),
        EventPayload::WorkIntentChanged(changed) => (UPDATE, "intent", changed.intent_id.to_string()),
        EventPayload::WorkIntentCreated(created) => (CREATE, "intent", created.intent_id.to_string()),
        EventPayload::WorkLeaseAcquired(acquired) => (CREATE, "lease", acquired.lease_id.to_string()),
        EventPayload::WorkLeaseEnded(ended) => (DELETE, "lease", ended.lease_id.to_string()),
        EventPayload::WorkPlanChanged(changed) => (UPDATE, "plan", changed.plan_id.to_string()),
        EventPayload::WorkPlanCreated(created) => (CREATE, "plan", created.plan_id.to_string()),
        EventPayload::WorkTaskAssigned(assigned) => (UPDATE, "task", assigned.task_id.to_string()),
        EventPayload::WorkTaskChanged(changed) => (UPDATE, "task", changed.task_id.to_string()),
        EventPayload::WorkTaskCreated(created) => (CREATE, "task", created.task_id.to_string()),
        _ => return None,
    };
    let unmapped = match serde_json::to_value(&event.payload) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    };
    Some(Mapped {
        class: Class::EntityManagement,
        activity,
        outcome: Outcome::Success,
        severity: Severity::Informational,
        attributes: object([("entity", json!({"type": kind, "uid": uid}))]),
        unmapped,
    })
}
