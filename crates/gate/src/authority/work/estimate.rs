//! What a plan will cost: one call for each scope that its tasks require.

use std::collections::BTreeMap;

use toolgate_model::credential::ServiceName;
use toolgate_model::grant::GrantStatus;
use toolgate_model::id::{PlanId, TaskId};
use toolgate_model::permission::Permission;
use toolgate_model::scope::{Scope, ScopeSet};
use toolgate_model::service::ServiceDefinition;

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
    /// With the most expensive tool of each scope.
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
        // INVARIANT: one page has all tasks that an intent may have.
        let tasks = self.tasks(caller, plan.intent, filter, PageRequest::first(PageRequest::LIMIT)).await?.items;
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
        for task in tasks {
            let mut one = TaskEstimate { task: task.id, min_micros: 0, max_micros: 0, unknown: Vec::new() };
            for requirement in &task.details.requires_tools {
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

/// The prices of the scopes that the caller may see; of all of them without `visible`.
fn prices_of(definition: &ServiceDefinition, visible: Option<&ScopeSet>) -> BTreeMap<Scope, (u64, u64)> {
    let mut prices: BTreeMap<Scope, Option<(u64, u64)>> = BTreeMap::new();
    for tool in definition.tools.values().filter(|tool| visible.is_none_or(|visible| visible.contains(&tool.scope))) {
        let cost = tool.estimated_cost.map(|cost| (cost.micros(), cost.micros()));
        prices
            .entry(tool.scope.clone())
            .and_modify(|range| {
                *range = range.zip(cost).map(|((min, max), (cost, _))| (min.min(cost), max.max(cost)));
            })
            .or_insert(cost);
    }
    prices.into_iter().filter_map(|(scope, range)| Some((scope, range?))).collect()
}
