//! What a plan will cost: one call for each scope that its tasks require.

use std::collections::BTreeMap;

use toolgate_model::constraint::Cost;
use toolgate_model::credential::ServiceName;
use toolgate_model::grant::GrantStatus;
use toolgate_model::id::{PlanId, TaskId};
use toolgate_model::permission::Permission;
use toolgate_model::scope::{Scope, ScopeSet};
use toolgate_model::service::{ServiceDefinition, ToolDefinition};

use super::WorkAdministration;
use crate::identify::Caller;
use crate::ports::ledger::{Freshness, GrantFilter, PageRequest, TaskFilter};
use crate::refusal::Refusal;

/// The estimated cost of a plan, in millionths of a US dollar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanEstimate {
    pub tasks: Vec<TaskEstimate>,
    /// With the cheapest tool of each scope.
    pub min_micros: u64,
    /// With the most expensive tool of each scope, at the most that its call can cost.
    pub max_micros: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEstimate {
    pub task: TaskId,
    pub min_micros: u64,
    pub max_micros: u64,
    /// Scopes without a tool whose cost the caller may know.
    pub unknown: Vec<(ServiceName, Scope)>,
}

/// The tools of each scope as cheapest and most expensive cost; a scope with a tool of unknown cost is not in it.
type Prices = BTreeMap<ServiceName, BTreeMap<Scope, (u64, u64)>>;

impl WorkAdministration {
    /// Estimates the cost of a plan. Who does not manage tools learns only the cost of tools that it could call itself.
    pub async fn estimate_plan(&self, caller: &Caller, id: PlanId) -> Result<PlanEstimate, Refusal> {
        let plan = self.plan(caller, id).await?;
        let filter = TaskFilter { plan: Some(id), ..TaskFilter::default() };
        let (mut tasks, mut page) = (Vec::new(), PageRequest::first(PageRequest::LIMIT));
        loop {
            let found = self.tasks(caller, plan.intent, filter.clone(), page.clone()).await?;
            let of_page = found.items.into_iter().map(|task| (task.id, task.details.requires_tools));
            tasks.extend(of_page);
            match found.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        let registry = self.services.registry(caller.tenant(), self.clock.now(), Freshness::Newest).await?;
        let visible = self.callable_scopes(caller).await?;
        let mut prices = Prices::new();
        for service in &registry.services {
            let definition = &service.definition;
            let scopes = match &visible {
                None => None,
                Some(visible) => match visible.get(&definition.service) {
                    Some(scopes) => Some(scopes),
                    None => continue,
                },
            };
            // The newest version of a service is the first one.
            prices.entry(definition.service.clone()).or_insert_with(|| prices_of(definition, scopes));
        }
        let mut estimate = PlanEstimate::default();
        for (task, requires_tools) in tasks {
            let mut one = TaskEstimate { task, min_micros: 0, max_micros: 0, unknown: Vec::new() };
            for requirement in &requires_tools {
                for scope in requirement.scopes.iter() {
                    match prices.get(&requirement.service).and_then(|scopes| scopes.get(scope)) {
                        Some((min, max)) => {
                            one.min_micros = one.min_micros.saturating_add(*min);
                            one.max_micros = one.max_micros.saturating_add(*max);
                        }
                        None => one.unknown.push((requirement.service.clone(), scope.clone())),
                    }
                }
            }
            estimate.min_micros = estimate.min_micros.saturating_add(one.min_micros);
            estimate.max_micros = estimate.max_micros.saturating_add(one.max_micros);
            estimate.tasks.push(one);
        }
        Ok(estimate)
    }

    /// The scopes that the caller holds, by service; `None` for a caller that manages tools, which sees all.
    async fn callable_scopes(&self, caller: &Caller) -> Result<Option<BTreeMap<ServiceName, ScopeSet>>, Refusal> {
        if caller.may(Permission::ManageTools) {
            return Ok(None);
        }
        let filter = GrantFilter {
            agent: Some(caller.id().clone()),
            status: Some(GrantStatus::Active),
            ..GrantFilter::all(self.clock.now())
        };
        let held = self.grants.grants(caller.tenant(), filter, PageRequest::first(PageRequest::LIMIT)).await?;
        let mut scopes: BTreeMap<ServiceName, Vec<Scope>> = BTreeMap::new();
        for lineage in held.items {
            let of_service = scopes.entry(lineage.grant().service.clone()).or_default();
            of_service.extend(lineage.effective().scopes.iter().cloned());
        }
        Ok(Some(scopes.into_iter().map(|(service, scopes)| (service, scopes.into_iter().collect())).collect()))
    }
}

/// What a call of a tool costs at least, as far as is known, and at most. A service that states the cost of a call may
/// state more than the estimate.
fn price(tool: &ToolDefinition) -> Option<(u64, u64)> {
    let estimate = tool.estimated_cost.map(Cost::micros);
    let most = tool.stated_cost.as_ref().map(|stated| stated.at_most.micros()).or(estimate)?;
    Some((estimate.unwrap_or(0), most))
}

/// The prices of the scopes that the caller may see; of all of them without `visible`.
fn prices_of(definition: &ServiceDefinition, visible: Option<&ScopeSet>) -> BTreeMap<Scope, (u64, u64)> {
    let mut prices: BTreeMap<Scope, Option<(u64, u64)>> = BTreeMap::new();
    for tool in definition.tools.values().filter(|tool| visible.is_none_or(|visible| visible.contains(&tool.scope))) {
        let cost = price(tool);
        prices
            .entry(tool.scope.clone())
            .and_modify(|range| {
                *range = range.zip(cost).map(|((min, max), (least, most))| (min.min(least), max.max(most)));
            })
            .or_insert(cost);
    }
    prices.into_iter().filter_map(|(scope, range)| Some((scope, range?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_costs_at_most_what_its_service_may_state() {
        let definition = json!({"service": "models", "version": "1", "tools": {
            "fixed": {"scope": "a", "estimated_cost_usd": 0.02},
            "stated": {"scope": "b", "estimated_cost_usd": 0.01, "cost": {"from": "/cost", "at_most_usd": 0.05}},
            "usual": {"scope": "c", "estimated_cost_usd": 0.01, "cost": {"from": "/cost"}},
            "unknown": {"scope": "d"},
            "only_stated": {"scope": "e", "cost": {"from": "/cost", "at_most_usd": 0.05}},
        }});
        let prices = prices_of(&ServiceDefinition::from_json(&definition).unwrap(), None);
        let price = |scope: &str| prices.get(&Scope::parse(scope).unwrap()).copied();
        assert_eq!(price("a"), Some((20_000, 20_000)));
        assert_eq!(price("b"), Some((10_000, 50_000)));
        assert_eq!(price("c"), Some((10_000, 100_000)));
        assert_eq!(price("d"), None);
        assert_eq!(price("e"), Some((0, 50_000)));
    }
}
