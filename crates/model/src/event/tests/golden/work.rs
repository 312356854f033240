//! Events of coordinated work.

use super::*;
use crate::id::{CoordinatorId, CostId, IntentId, LeaseId, PlanId, TaskId};
use crate::work::{CoordinatorStatus, Guardrails, IntentStatus, LeaseStatus, PlanState, TaskStatus};

pub(super) fn work() -> Vec<EventPayload> {
    let intent_id = IntentId::new(at(0), [21; 10]);
    let plan_id = PlanId::new(at(0), [22; 10]);
    let task_id = TaskId::new(at(0), [23; 10]);
    let lease_id = LeaseId::new(at(0), [24; 10]);
    let coordinator_id = CoordinatorId::new(at(0), [25; 10]);
    let guardrails = json!({
        "max_tool_invocations": 500, "max_tool_cost_usd": 25.5, "allowed_services": ["github", "stripe"],
        "denied_services": ["aws"], "require_approval_for": ["stripe.refunds.create"], "auto_delegate": true,
        "max_delegation_depth": 2
    });
    let guardrails = Guardrails::from_json(guardrails.as_object().unwrap()).unwrap();
    let changed = |agent: Option<&str>, from, to, reason: Option<&str>| {
        EventPayload::WorkTaskChanged(WorkTaskChanged {
            agent_id: agent.map(principal),
            attempt: 1,
            from,
            reason: reason.map(str::to_owned),
            revoked_grants: 2,
            task_id,
            to,
            version: 3,
        })
    };
    vec![
        EventPayload::WorkAgentAssigned(WorkAgentAssigned {
            agent_id: principal("ab"),
            intent_id,
            role: "worker".to_owned(),
        }),
        EventPayload::WorkAgentUnassigned(WorkAgentUnassigned { agent_id: principal("ab"), intent_id }),
        EventPayload::WorkCoordinatorChanged(Box::new(WorkCoordinatorChanged {
            changed: vec!["guardrails".to_owned()],
            coordinator_id,
            guardrails: Some(guardrails.clone()),
            intent_id,
            status: CoordinatorStatus::Active,
            version: 2,
        })),
        EventPayload::WorkCoordinatorChanged(Box::new(WorkCoordinatorChanged {
            changed: vec!["status".to_owned()],
            coordinator_id,
            guardrails: None,
            intent_id,
            status: CoordinatorStatus::Completed,
            version: 3,
        })),
        EventPayload::WorkCoordinatorCreated(Box::new(WorkCoordinatorCreated {
            agent_id: principal("ab"),
            coordinator_id,
            guardrails,
            intent_id,
            supervisor_id: principal("admin"),
        })),
        EventPayload::WorkCostRecorded(WorkCostRecorded {
            amount_micros: 1_500_000,
            cost_id: CostId::new(at(0), [26; 10]),
            cost_type: "tokens".to_owned(),
            intent_id,
            unit: "tokens".to_owned(),
        }),
        EventPayload::WorkIntentChanged(WorkIntentChanged { intent_id, reason: None, status: None, version: 2 }),
        EventPayload::WorkIntentChanged(WorkIntentChanged {
            intent_id,
            reason: Some("done".to_owned()),
            status: Some(IntentStatus::Completed),
            version: 3,
        }),
        EventPayload::WorkIntentCreated(WorkIntentCreated {
            created_by: principal("ab"),
            intent_id,
            status: IntentStatus::Draft,
        }),
        EventPayload::WorkLeaseAcquired(WorkLeaseAcquired {
            agent_id: principal("ab"),
            expires_at: at(300_000),
            intent_id,
            lease_id,
            scope: "research".to_owned(),
        }),
        EventPayload::WorkLeaseEnded(WorkLeaseEnded {
            intent_id,
            lease_id,
            scope: "research".to_owned(),
            status: LeaseStatus::Released,
        }),
        EventPayload::WorkPlanChanged(WorkPlanChanged {
            intent_id,
            plan_id,
            state: PlanState::Active,
            tasks: 2,
            version: 2,
        }),
        EventPayload::WorkPlanCreated(WorkPlanCreated { intent_id, plan_id, tasks: 0 }),
        EventPayload::WorkTaskAssigned(WorkTaskAssigned {
            agent_id: Some(principal("ab")),
            delegated: 1,
            previous_agent_id: None,
            revoked_grants: 0,
            task_id,
        }),
        changed(Some("ab"), TaskStatus::Ready, TaskStatus::Claimed, None),
        changed(None, TaskStatus::Running, TaskStatus::Failed, Some("the deadline has passed")),
        EventPayload::WorkTaskCreated(WorkTaskCreated {
            intent_id,
            plan_id: Some(plan_id),
            status: TaskStatus::Pending,
            task_id,
        }),
    ]
}
