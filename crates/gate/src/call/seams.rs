//! The conformance seams: calls of tools that are in no catalog, down the very same path and into the very same log as
//! every other call. Whoever rehearses must be allowed to act for others.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_model::credential::ServiceName;
use toolgate_model::hook::RunId;
use toolgate_model::id::SessionId;
use toolgate_model::permission::Permission;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::rate_limit::RateLimit;
use toolgate_model::scope::Scope;
use toolgate_model::service::{ToolDefinition, ToolName};

use super::settle::CallAnswer;
use super::{CallRequest, Denial, Own};
use crate::catalog::{Backing, Tool};
use crate::gate::Gate;
use crate::identify::Caller;
use crate::refusal::{Code, Refusal};

/// A call of a seam.
pub struct Rehearsal {
    /// For whom.
    pub principal: PrincipalId,
    /// What the tool is called.
    pub tool: String,
    /// The scopes that it requires, as they are written; what cannot be read cannot be decided.
    pub required_scopes: Vec<String>,
    /// With which arguments.
    pub arguments: Map<String, Value>,
    /// How often it may be called.
    pub limit: Option<RateLimit>,
    /// What carries it out.
    pub backing: Backing,
    /// As part of which execution.
    pub run: Option<RunId>,
    /// As part of which session.
    pub session: Option<SessionId>,
    /// From where.
    pub address: IpAddr,
}

impl Gate {
    /// Walks the call of a seam down the path.
    pub async fn rehearse(self: &Arc<Self>, caller: Caller, rehearsal: Rehearsal) -> Result<CallAnswer, Denial> {
        let denied = Denial::unrecorded;
        caller.require(Permission::ActAs).map_err(denied)?;
        let tool = Arc::new(self.rehearsed(caller.tenant(), &rehearsal).map_err(denied)?);
        let request = CallRequest {
            agent: Some(rehearsal.principal),
            run: rehearsal.run,
            session: rehearsal.session,
            ..CallRequest::new(rehearsal.tool, rehearsal.arguments, rehearsal.address)
        };
        self.invoke_with(caller, request, Own { tool: Some(tool), ..Own::default() }).await
    }

    /// Opens a session of a tool that is in no catalog.
    pub async fn rehearse_session(
        &self,
        caller: &Caller,
        tool: &str,
    ) -> Result<crate::ports::ledger::ToolSession, Refusal> {
        caller.require(Permission::ActAs)?;
        self.open_session_of(caller, tool.to_owned(), None, None).await
    }
}

impl Gate {
    /// Whether a principal holds a scope; one that is not there, or a scope that cannot be read, is a no.
    pub async fn holds_scope(&self, caller: &Caller, principal: &PrincipalId, scope: &str) -> Result<bool, Refusal> {
        caller.require_acting_for(principal)?;
        let found = self.ledger.principal(caller.tenant(), principal).await?;
        let found = found.filter(|principal| principal.removed_at.is_none());
        Ok(found.is_some_and(|principal| principal.scopes.cover_all([scope]).is_ok()))
    }
}

impl Gate {
    fn rehearsed(&self, tenant: &TenantId, rehearsal: &Rehearsal) -> Result<Tool, Refusal> {
        let wrong = |_| Refusal::new(Code::InvalidField, "`toolName` is no name of a tool").with("path", "toolName");
        let (service, name) = rehearsal.tool.split_once('.').unwrap_or(("conformance", &rehearsal.tool));
        let fetch = self.builtins.of(tenant).find(|builtin| builtin.tool.backing == rehearsal.backing);
        let definition = match fetch {
            Some(builtin) => ToolDefinition { rate_limit: rehearsal.limit, ..(*builtin.tool.definition).clone() },
            None => ToolDefinition {
                rate_limit: rehearsal.limit,
                ..ToolDefinition::of_scope(Scope::parse("conformance").map_err(wrong)?)
            },
        };
        let (service, name) = (ServiceName::parse(service).map_err(wrong)?, ToolName::parse(name).map_err(wrong)?);
        let tool = Tool::built_in(service, name, Arc::new(definition), rehearsal.backing);
        Ok(tool.requiring(rehearsal.required_scopes.clone()))
    }
}
