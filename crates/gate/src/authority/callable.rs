//! The tools that a caller can call, under names that every client takes.

use std::sync::Arc;

use toolgate_model::permission::Permission;
use toolgate_model::tool_alias::{self, Meaning};

use crate::authority::Administration;
use crate::catalog::Tool;
use crate::identify::Caller;
use crate::ports::ledger::Freshness;
use crate::refusal::Refusal;

impl Administration {
    /// The tools that the caller may call, by alias. Where several grants are for a tool of the same name, that of the
    /// oldest is returned.
    pub async fn callable_tools(&self, caller: &Caller) -> Result<Vec<Arc<Tool>>, Refusal> {
        if !caller.may(Permission::InvokeTools) {
            return Ok(Vec::new());
        }
        let catalog = self.catalogs.of(caller.tenant(), Freshness::Newest).await?;
        let granted = self.granted(caller, caller.id(), &catalog).await?;
        let own = self.builtins.of(caller.tenant()).map(|builtin| Arc::clone(&builtin.tool));
        let all = own.chain(granted.into_iter().map(|granted| granted.tool));
        let mut tools: Vec<Arc<Tool>> = all.filter(|tool| caller.may_use(tool)).collect();
        tools.sort_by(|one, other| one.alias().cmp(other.alias()));
        tools.dedup_by(|one, other| one.alias() == other.alias());
        Ok(tools)
    }

    /// The newest tool of this alias with parameters that clients repeat in headers, whether the caller may use it or not.
    pub async fn mirroring_tool(&self, caller: &Caller, alias: &str) -> Result<Option<Arc<Tool>>, Refusal> {
        let catalog = self.catalogs.of(caller.tenant(), Freshness::Recent).await?;
        let found = match tool_alias::read(alias) {
            Some(Meaning::Tool(service, name)) => {
                catalog.service(&service, None).and_then(|service| service.tool(name.as_str()).cloned())
            }
            Some(Meaning::Hashed) => {
                let mut tools = catalog.services().flat_map(|service| service.tools());
                tools.find(|tool| tool.alias().as_str() == alias).cloned()
            }
            Some(Meaning::BuiltIn) | None => None,
        };
        Ok(found.filter(|tool| !tool.mirrored().is_empty()))
    }

    /// What a call names the tool of this alias; `None` where no tool can have it.
    pub fn called_by_alias(&self, caller: &Caller, alias: &str) -> Option<String> {
        match tool_alias::read(alias)? {
            Meaning::Tool(service, name) => Some(service.with_tool(name.as_str())),
            Meaning::Hashed => Some(alias.to_owned()),
            Meaning::BuiltIn => {
                let found = self.builtins.aliased(caller.tenant(), alias)?;
                Some(found.descriptor.fields().tool_id.as_str().to_owned())
            }
        }
    }
}
