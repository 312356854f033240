//! Candidates and fits: a tool together with what may open it to the caller, before and after the constraints were checked.

use std::sync::Arc;

use toolgate_model::connection::{AdapterName, AuthPlacement, Connection};
use toolgate_model::id::GrantId;
use toolgate_model::principal::Principal;
use toolgate_model::service::RenderedRequest;

use crate::catalog::Tool;
use crate::ports::ledger::{Generation, Holding};

/// A tool that the call names, with what may open it.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) opening: Opening,
    /// For whom the call is, as it was read; `None` where there is no such principal.
    pub(crate) agent: Option<Arc<Principal>>,
    /// The state that all of this was read from.
    pub(crate) generation: Generation,
    pub(crate) tool: Arc<Tool>,
    /// The revision of the registry that the tool was found in; `None` for one that is not in it.
    pub(crate) registry: Option<u64>,
}

/// What opens a tool.
#[derive(Debug, Clone)]
pub(crate) enum Opening {
    /// A grant that the agent holds on the credential of the tool's service.
    Grant(Arc<Holding>),
    /// Nothing but the agent's own scopes: the tool needs no credential.
    Scopes,
}

impl Candidate {
    pub(crate) fn holding(&self) -> Option<&Arc<Holding>> {
        match &self.opening {
            Opening::Grant(holding) => Some(holding),
            Opening::Scopes => None,
        }
    }

    pub(crate) fn grant(&self) -> Option<GrantId> {
        self.holding().map(|holding| holding.grant())
    }

    /// The tool with its service.
    pub(crate) fn tool_name(&self) -> String {
        self.tool.service.with_tool(self.tool.name.as_str())
    }
}

/// A candidate that the constraints let pass, with what is to be done.
#[derive(Debug, Clone)]
pub(crate) struct Fit {
    pub(crate) candidate: Candidate,
    pub(crate) errand: Errand,
}

/// What is to be done.
#[derive(Debug, Clone)]
pub(crate) enum Errand {
    /// A request to a service, with its credential.
    Connector {
        holding: Arc<Holding>,
        adapter: AdapterName,
        /// Where the credential is put.
        placement: AuthPlacement,
        /// What is to be sent, before the credential is put in.
        request: Box<RenderedRequest>,
    },
    /// A request as the caller wrote it, without any credential.
    Fetch(Box<RenderedRequest>),
    /// A tool of this machine is used.
    Workspace,
    /// The answer of a person is what comes of it.
    Question,
    /// Whoever asked carries it out.
    External,
    /// Nothing leaves Toolgate.
    Conformance { fails: bool },
}

impl Fit {
    /// How the service is reached.
    ///
    /// INVARIANT: `constrain` lets nothing pass whose connection was not understood.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.candidate.holding().and_then(|holding| holding.connection.as_ref().ok())
    }

    /// What is to be sent, where that is a request.
    pub(crate) fn request(&self) -> Option<&RenderedRequest> {
        match &self.errand {
            Errand::Connector { request, .. } | Errand::Fetch(request) => Some(request),
            Errand::Workspace | Errand::Question | Errand::External | Errand::Conformance { .. } => None,
        }
    }
}
