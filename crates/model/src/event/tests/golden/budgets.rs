//! Events of budgets and stops.

use super::*;
use crate::spending::{Account, Budget, Limit, Used};

pub(super) fn budgets() -> Vec<EventPayload> {
    let limit = Limit { max_calls: Some(100), max_cost: Cost::from_dollars(2.5), warn_at_percent: 80 };
    let used = Used { calls: 80, cost: 1_250_000 };
    let reached = |account, day| Box::new(BudgetReached::new(&account, &limit, used, day));
    let calls_only = Limit { max_cost: None, ..limit };
    let stopped = |agent: bool, reason: Option<&str>| CallsStopped {
        agent_id: agent.then(|| principal("billing")),
        reason: reason.map(|reason| Line::parse(reason).unwrap()),
    };
    let budget: Budget = serde_json::from_value(json!({"calls_per_day": 100, "cost_total_usd": 2.5})).unwrap();
    let updated = |budget| {
        EventPayload::AgentUpdated(AgentUpdated {
            agent_id: principal("billing"),
            budget: Some(budget),
            changed: vec!["budget".to_owned()],
            permissions: None,
            revision: 2,
            scopes: None,
        })
    };
    vec![
        EventPayload::BudgetWarned(reached(Account::Agent(principal("billing")), Some(at(0)))),
        EventPayload::BudgetExhausted(Box::new(BudgetReached::new(&Account::TenantTotal, &calls_only, used, None))),
        EventPayload::AgentStopped(stopped(true, Some("it pays twice"))),
        EventPayload::AgentResumed(stopped(true, None)),
        EventPayload::TenantStopped(stopped(false, None)),
        EventPayload::TenantResumed(stopped(false, None)),
        EventPayload::GateStopped(stopped(false, Some("an incident"))),
        EventPayload::GateResumed(stopped(false, None)),
        EventPayload::TenantUpdated(TenantUpdated { budget: Some(budget), tenant_id: TenantId::default_tenant() }),
        EventPayload::TenantUpdated(TenantUpdated { budget: None, tenant_id: TenantId::default_tenant() }),
        updated(Some(budget)),
        updated(None),
    ]
}
