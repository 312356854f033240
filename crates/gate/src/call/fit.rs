//! Candidates and fits: a grant together with a tool that it may open, before and after the constraints were checked.

use std::sync::Arc;

use serde_json::Value;
use toolgate_model::connection::{AdapterName, AuthPlacement, Connection};
use toolgate_model::id::GrantId;
use toolgate_model::service::RenderedRequest;

use crate::catalog::Tool;
use crate::ports::guardian::CallView;
use crate::ports::ledger::Holding;

use super::Call;

/// A grant that the agent holds, with the tool that the call names at its service.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) holding: Arc<Holding>,
    pub(crate) tool: Arc<Tool>,
    /// The revision of the registry that the tool was found in; `None` for a tool that the credential defines.
    pub(crate) registry: Option<u64>,
}

impl Candidate {
    pub(crate) fn grant(&self) -> GrantId {
        self.holding.grant()
    }

    /// The call through this grant, as guardians and people see it.
    pub(crate) fn view<'a>(&'a self, call: &'a Call, parameters: &'a serde_json::Map<String, Value>) -> CallView<'a> {
        CallView {
            invocation: call.id,
            tenant: call.caller.tenant(),
            agent: &call.agent,
            actor: call.caller.id(),
            service: &self.tool.service,
            tool: &self.tool.name,
            definition: &self.tool.definition,
            authority: &self.holding.effective,
            parameters,
        }
    }
}

/// A candidate that the constraints let pass, with what is to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Fit {
    pub(crate) candidate: Candidate,
    pub(crate) adapter: AdapterName,
    /// Where the credential is put.
    pub(crate) placement: AuthPlacement,
    /// What is to be sent, before the credential is put in.
    pub(crate) request: RenderedRequest,
}

impl Fit {
    /// How the service is reached.
    ///
    /// INVARIANT: `constrain` lets nothing pass whose connection was not understood.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.candidate.holding.connection.as_ref().ok()
    }
}
