//! The catalog as RFC 0078 defines it: the descriptors of the tools that the caller may invoke, and of no others. An
//! unknown tool and a tool that the caller may not use are refused with the same message.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolgate_model::descriptor::{SourceKind, ToolDescriptor, ToolId};
use toolgate_model::permission::Permission;

use super::discovery::usable_tool;
use crate::authority::Administration;
use crate::catalog::Tool;
use crate::identify::Caller;
use crate::ports::ledger::Freshness;
use crate::refusal::{Code, Refusal};

impl Administration {
    /// The tools that the caller may invoke, by id. If several grants lead to tools with the same id, the oldest
    /// grant's tool is described.
    pub async fn descriptors(
        &self,
        caller: &Caller,
        source: Option<SourceKind>,
    ) -> Result<Vec<Arc<ToolDescriptor>>, Refusal> {
        if !caller.may(Permission::InvokeTools) {
            return Ok(Vec::new());
        }
        let catalog = self.catalogs.of(caller.tenant(), Freshness::Newest).await?;
        let granted = self.granted(caller, caller.id(), &catalog).await?;
        let granted = granted.iter().filter(|granted| caller.may_use(&granted.tool));
        let own = self.builtins.of(caller.tenant()).filter(|builtin| caller.may_use(&builtin.tool));
        let described = granted.filter_map(|granted| granted.tool.descriptor().ok());
        let mut found: BTreeMap<ToolId, Arc<ToolDescriptor>> = BTreeMap::new();
        for descriptor in own.map(|builtin| Arc::clone(&builtin.descriptor)).chain(described) {
            if source.is_none_or(|source| descriptor.fields().source == source) {
                found.entry(descriptor.fields().tool_id.clone()).or_insert(descriptor);
            }
        }
        Ok(found.into_values().collect())
    }

    /// The tool with this id, if the caller may invoke it.
    pub async fn descriptor(&self, caller: &Caller, tool: &ToolId) -> Result<Arc<ToolDescriptor>, Refusal> {
        let found = match caller.may(Permission::InvokeTools) {
            true => self.described(caller, tool).await?,
            false => None,
        };
        // The id is not repeated: the response must be the same for every tool that does not exist for the caller.
        found.ok_or_else(|| Refusal::new(Code::ToolNotFound, "there is no such tool, or you may not use it"))
    }

    async fn described(&self, caller: &Caller, tool: &ToolId) -> Result<Option<Arc<ToolDescriptor>>, Refusal> {
        if let Some(own) = self.builtins.find(caller.tenant(), tool) {
            return Ok(caller.may_use(&own.tool).then(|| Arc::clone(&own.descriptor)));
        }
        let Some((_, service, name)) = tool.service_and_tool() else { return Ok(None) };
        let catalog = self.catalogs.of(caller.tenant(), Freshness::Newest).await?;
        let (_, held) = self.active_grants(caller, caller.id()).await?;
        let of_service = held.iter().filter(|held_grant| held_grant.credential.service == service);
        let mut described = of_service.filter_map(|held_grant| {
            let found = usable_tool(held_grant, &catalog, &name).filter(|found| caller.may_use(found))?;
            // Two versions of a service may have different sources.
            found.descriptor().ok().filter(|descriptor| descriptor.fields().tool_id == *tool)
        });
        Ok(described.next())
    }
}

impl Caller {
    pub(super) fn may_use(&self, tool: &Tool) -> bool {
        tool.require_open_to(Some(self.principal())).is_ok()
    }
}
