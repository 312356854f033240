//! Allowlists: checks that the tools on a principal's allowlist exist.

use std::collections::BTreeSet;

use toolgate_model::descriptor::{SourceKind, ToolId};

use super::discovery::implicit_tools;
use crate::authority::Administration;
use crate::catalog::Catalog;
use crate::identify::Caller;
use crate::ports::ledger::Freshness;
use crate::refusal::{Code, Refusal};

/// The maximum number of tools on an allowlist.
const LIMIT: usize = 1024;

impl Administration {
    /// The entries of an allowlist that do not exist in the caller's tenant: no version of a registered tool, no tool
    /// defined by a credential, no built-in tool.
    pub(super) async fn unresolved_tools(
        &self,
        caller: &Caller,
        allowlist: Option<&BTreeSet<ToolId>>,
    ) -> Result<Vec<ToolId>, Refusal> {
        let Some(allowlist) = allowlist else { return Ok(Vec::new()) };
        if allowlist.len() > LIMIT {
            let reason = format!("`tool_allowlist` must name at most {LIMIT} tools");
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "tool_allowlist"));
        }
        let catalog = self.catalogs.of(caller.tenant(), Freshness::Newest).await?;
        let found =
            |tool: &ToolId| self.builtins.find(caller.tenant(), tool).is_some() || is_registered(tool, &catalog);
        let mut unresolved: Vec<ToolId> = allowlist.iter().filter(|tool| !found(tool)).cloned().collect();
        if unresolved.iter().any(|tool| tool.fits(SourceKind::Connector)) {
            let mut defined = BTreeSet::new();
            for credential in self.all_credentials(caller).await? {
                let tools = implicit_tools(&credential, &catalog).into_iter();
                defined.extend(
                    tools.filter_map(|tool| ToolId::of_service(SourceKind::Connector, &tool.service, &tool.name)),
                );
            }
            unresolved.retain(|tool| !defined.contains(tool));
        }
        Ok(unresolved)
    }
}

fn is_registered(tool: &ToolId, catalog: &Catalog) -> bool {
    let Some((source, service, name)) = tool.service_and_tool() else { return false };
    let mut versions = catalog.versions(&service).iter();
    versions.any(|version| version.registered.definition.source == source && version.tool(name.as_str()).is_some())
}
