//! The models of providers, as a caller may use them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use toolgate_model::credential::ServiceName;
use toolgate_model::llm::Api;
use toolgate_model::step::{ModelStep, Step};

use crate::authority::Administration;
use crate::catalog::Tool;
use crate::identify::Caller;
use crate::ports::ledger::Freshness;
use crate::refusal::Refusal;

impl Administration {
    /// The tool of a provider for this API, in the newest version of its definition. Whether the caller may call it is
    /// decided by the call.
    pub async fn model_tool(
        &self,
        caller: &Caller,
        provider: &ServiceName,
        api: Api,
    ) -> Result<Option<Arc<Tool>>, Refusal> {
        for freshness in [Freshness::Recent, Freshness::Newest] {
            let catalog = self.catalogs.of(caller.tenant(), freshness).await?;
            let found = catalog.service(provider, None).and_then(|service| service.tool(api.as_str()).cloned());
            if let Some(tool) = found.filter(|tool| step(tool).is_some_and(|step| step.api == api)) {
                return Ok(Some(tool));
            }
        }
        Ok(None)
    }

    /// The names of the models of a provider that the caller may call, as far as its definition names any; `None` if the
    /// caller may call none of its tools.
    pub async fn usable_models(
        &self,
        caller: &Caller,
        provider: &ServiceName,
    ) -> Result<Option<BTreeSet<String>>, Refusal> {
        let granted = self.granted_tools(caller, None).await?;
        let mut models = None::<BTreeSet<String>>;
        for granted in granted.iter().filter(|granted| granted.tool.service == *provider) {
            let Some(step) = step(&granted.tool).filter(|_| caller.may_use(&granted.tool)) else { continue };
            let constraints = &granted.held_grant.effective.constraints;
            let named = step.models.iter().map(String::as_str);
            let priced = step.prices.names().filter(|_| step.models.is_empty());
            let allowed = named.chain(priced).filter(|name| constraints.allows_value("model", &Value::from(*name)));
            models.get_or_insert_default().extend(allowed.map(str::to_owned));
        }
        Ok(models)
    }
}

/// The step of a tool that calls a model.
fn step(tool: &Tool) -> Option<&ModelStep> {
    match &tool.definition.step {
        Some(Step::Model(step)) => Some(step),
        _ => None,
    }
}
