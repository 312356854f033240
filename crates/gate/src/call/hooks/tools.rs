//! The tool of a hook request: one that the gate governs, or one that only the runtime knows. The gate governs
//! everything in its catalog, whether defined by a registered service, by a credential or built in; by its name, its
//! id, or its name without the service, which a call may also use.

use std::sync::Arc;

use serde_json::Map;
use toolgate_model::approval::Category;
use toolgate_model::connection::Connection;
use toolgate_model::credential::ServiceName;
use toolgate_model::principal::TenantId;
use toolgate_model::service::ToolName;

use super::Hooks;
use super::executions::Begun;
use super::names::NormalName;
use super::{HookQuestion, UnknownTools};
use crate::builtin;
use crate::call::ToolStanding;
use crate::call::external::external_tool;
use crate::catalog::Tool;
use crate::identify::Caller;
use crate::ports::ledger::Freshness;
use crate::refusal::{Code, Refusal};

/// The service name for tools whose name has none.
const NO_SERVICE: &str = "agent";
/// The name for tools that are not named.
const UNKNOWN: &str = "unknown";

/// The tool that a hook request names.
#[derive(Clone)]
pub(super) struct Named {
    /// `None` for a tool that the gate governs and that does not exist, or not for this agent: the pipeline refuses it.
    pub(super) tool: Option<Arc<Tool>>,
    pub(super) standing: ToolStanding,
}

/// What the catalog knows about a name.
enum Known {
    Tool(Arc<Tool>),
    /// A service without such a tool, or several tools.
    Name,
    Nothing,
}

impl Hooks {
    /// The tool of a hook request about a call.
    pub(super) async fn asked_tool(
        &self,
        caller: &Caller,
        question: &HookQuestion,
        named: &str,
    ) -> Result<Named, Refusal> {
        let standing = match self.known_to(caller, question, named).await? {
            Known::Tool(tool) => return Ok(Named { tool: Some(tool), standing: ToolStanding::Governed }),
            Known::Name => return Ok(Named { tool: None, standing: ToolStanding::Governed }),
            Known::Nothing => match question.terms.unknown_tools {
                UnknownTools::Ask => ToolStanding::ForeignAsks,
                UnknownTools::Judge => ToolStanding::Foreign,
                UnknownTools::Deny => {
                    let reason = format!("this gate has no tool `{named}`");
                    return Err(Refusal::new(Code::ToolNotFound, reason));
                }
            },
        };
        Ok(Named { tool: Some(Arc::new(unknown_tool(named, Category::Mcp)?)), standing })
    }

    /// The tool of a result: the one that the execution was started with, which must match the named one; else the
    /// named one, or an unknown one.
    pub(super) async fn result_tool(&self, caller: &Caller, question: &HookQuestion) -> Result<Named, Refusal> {
        let begun = self.executions.find(caller, question);
        let foreign = |named: &str| -> Result<Named, Refusal> {
            let tool = Some(Arc::new(unknown_tool(named, Category::Mcp)?));
            Ok(Named { tool, standing: ToolStanding::Foreign })
        };
        let Some(named) = question.event.tool.as_deref() else {
            return match begun {
                Some(Begun::One(begun)) => Ok(begun),
                Some(Begun::Several) => Err(contradiction("calls of several tools have this `executionId`")),
                None => foreign(UNKNOWN),
            };
        };
        let answered = match self.known_to(caller, question, named).await? {
            Known::Tool(tool) => Named { tool: Some(tool), standing: ToolStanding::Governed },
            Known::Name => {
                let reason = format!("`{named}` is a name on this gate, but not that of a single tool");
                return Err(Refusal::new(Code::ToolNotFound, reason));
            }
            Known::Nothing => foreign(named)?,
        };
        match begun {
            Some(Begun::One(begun)) if !begun.is_same(&answered) => {
                Err(contradiction("the call with this `executionId` used another tool"))
            }
            _ => Ok(answered),
        }
    }

    /// What is known about a name: by the grants of the agent, else by anything in the catalog.
    async fn known_to(&self, caller: &Caller, question: &HookQuestion, named: &str) -> Result<Known, Refusal> {
        let (call, _) = self.pipeline.begin(caller.clone(), self.request(question, named.to_owned(), Map::new()))?;
        let refusal = match self.pipeline.resolve(&call, Freshness::Newest).await {
            Ok(resolved) => return Ok(resolved.first().map_or(Known::Name, |candidate| Known::Tool(candidate.tool))),
            Err(refusal) => refusal,
        };
        match (refusal.code(), self.known(caller.tenant(), named, true).await?) {
            (Code::LedgerUnavailable | Code::Internal, _) => Err(refusal),
            (Code::ToolNotFound, known) => Ok(known),
            // Whatever other obstacle there is, the name is known.
            (_, Known::Nothing) => Ok(Known::Name),
            (_, known) => Ok(known),
        }
    }

    /// Whether a name, in any spelling, belongs to this gate: to a built-in tool, a registered service or a credential.
    /// A name without a service counts only with `bare`.
    pub(in crate::call) async fn governs(&self, tenant: &TenantId, named: &str, bare: bool) -> Result<bool, Refusal> {
        Ok(!matches!(self.known(tenant, named, bare).await?, Known::Nothing))
    }

    async fn known(&self, tenant: &TenantId, named: &str, bare: bool) -> Result<Known, Refusal> {
        let name = NormalName::of(named);
        if let Some(tool) = self.builtins.of(tenant).find_map(|builtin| {
            let id = &builtin.descriptor.fields().tool_id;
            let rest = name.after(&builtin.tool.service);
            let is_meant =
                name.is(id.as_str()) || rest.is_some_and(|rest| builtin.tool.name.as_str().eq_ignore_ascii_case(rest));
            is_meant.then(|| Arc::clone(&builtin.tool))
        }) {
            return Ok(Known::Tool(tool));
        }
        let own = ServiceName::parse(builtin::WORKSPACE).ok();
        if name.is_core() || own.is_some_and(|own| name.after(&own).is_some()) {
            return Ok(Known::Name);
        }
        let catalog = self.catalogs.of(tenant, Freshness::Newest).await?;
        let mut is_known = false;
        for service in catalog.services() {
            let Some(rest) = name.after(&service.registered.definition.service) else { continue };
            if let Some(tool) = service.tools().find(|tool| tool.name.as_str().eq_ignore_ascii_case(rest)) {
                return Ok(Known::Tool(Arc::clone(tool)));
            }
            is_known = true;
        }
        let credentials = self.credentials.credentials_naming(tenant, name.qualified()).await?;
        for credential in &credentials {
            let implicit = Connection::from_metadata(&credential.metadata)
                .map(|connection| connection.implicit_tools(&credential.scopes_available))
                .unwrap_or_default();
            let rest = match name.after(&credential.service) {
                Some(rest) => {
                    is_known = true;
                    rest
                }
                None if bare => name.qualified(),
                None => continue,
            };
            let is_meant = |tool: &ToolName| tool.as_str().eq_ignore_ascii_case(rest);
            if let Some((tool, definition)) = implicit.into_iter().find(|(tool, _)| is_meant(tool)) {
                let tool = Tool::implicit(credential.service.clone(), tool, Arc::new(definition));
                return Ok(if name.after(&credential.service).is_some() {
                    Known::Tool(Arc::new(tool))
                } else {
                    Known::Name
                });
            }
        }
        let tools = || catalog.services().flat_map(|service| service.tools());
        let is_named = |tool: &Arc<Tool>| name.is(tool.name.as_str()) || name.is(tool.definition.scope.as_str());
        if is_known || (bare && tools().any(is_named)) {
            return Ok(Known::Name);
        }
        Ok(Known::Nothing)
    }
}

impl Named {
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let of = |named: &Self| named.tool.as_ref().map(|tool| (tool.service.clone(), tool.name.clone()));
        self.standing.is_governed() == other.standing.is_governed() && of(self) == of(other)
    }
}

fn contradiction(reason: &str) -> Refusal {
    Refusal::new(Code::InvalidField, format!("the result cannot be evaluated: {reason}")).with("path", "executionId")
}

/// A tool that only the runtime knows. Characters that are not allowed in names are written as `@` and their bytes, so
/// that different names stay different.
pub(in crate::call) fn unknown_tool(named: &str, category: Category) -> Result<Tool, Refusal> {
    let mut name = String::with_capacity(named.len());
    for letter in named.chars() {
        if letter.is_ascii_alphanumeric() || "._:-".contains(letter) {
            name.push(letter);
            continue;
        }
        let mut buffer = [0; 4];
        for byte in letter.encode_utf8(&mut buffer).bytes() {
            name.push_str(&format!("@{byte:02x}"));
        }
    }
    let tool = match name.split_once('.') {
        Some((service, tool)) if !service.is_empty() && !tool.is_empty() => name.clone(),
        _ => format!("{NO_SERVICE}.{name}"),
    };
    external_tool(&tool, category)
}
