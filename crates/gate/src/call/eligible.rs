//! Candidates and eligible grants: a tool together with what authorizes its use, before and after the constraints are checked.

use std::sync::Arc;

use toolgate_model::connection::{AdapterName, AuthPlacement, Connection};
use toolgate_model::id::GrantId;
use toolgate_model::principal::Principal;
use toolgate_model::service::RenderedRequest;
use toolgate_model::spending::Reservation;
use toolgate_model::work::{AgentWork, Coordinator};

use crate::action::Action;
use crate::catalog::Tool;
use crate::ports::ledger::{CallLimits, Generation, HeldGrant};

/// A tool that the call names, with what may authorize its use.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) authorized_by: AuthorizedBy,
    /// The principal that the call is for, as read; `None` if it does not exist.
    pub(crate) agent: Option<Arc<Principal>>,
    /// What limits its calls besides its grants, as read with it.
    pub(crate) limits: Arc<CallLimits>,
    /// The state that all of this was read from.
    pub(crate) generation: Generation,
    /// [`HeldGrants::work_revision`](crate::ports::ledger::HeldGrants::work_revision).
    pub(crate) work_revision: u64,
    /// The work of the agent, if it has any.
    pub(crate) work: Option<Arc<AgentWork>>,
    pub(crate) tool: Arc<Tool>,
    /// The revision of the registry that was searched for the tool; `None` for a built-in tool.
    pub(crate) registry: Option<u64>,
    /// Whether the calling client executes the tool. All checks before an execution by the gate apply nevertheless.
    pub(crate) client_executed: bool,
}

/// What authorizes the use of a tool.
#[derive(Debug, Clone)]
pub(crate) enum AuthorizedBy {
    /// A grant that the agent holds on a credential of the tool's service.
    Grant(Arc<HeldGrant>),
    /// Only the agent's own scopes: the tool needs no credential.
    Scopes,
}

impl Candidate {
    pub(crate) fn held_grant(&self) -> Option<&Arc<HeldGrant>> {
        match &self.authorized_by {
            AuthorizedBy::Grant(held_grant) => Some(held_grant),
            AuthorizedBy::Scopes => None,
        }
    }

    /// The coordinators whose guardrails apply: those of the lineage of its grant, or, for a tool that needs no grant, those
    /// that the agent itself is.
    pub(crate) fn coordinators(&self) -> &[Arc<Coordinator>] {
        match (&self.authorized_by, &self.work) {
            (AuthorizedBy::Grant(held_grant), _) => &held_grant.coordinators,
            (AuthorizedBy::Scopes, Some(work)) => &work.coordinators,
            (AuthorizedBy::Scopes, None) => &[],
        }
    }

    /// What a call reserves: in the budgets of its agent and its tenant, and of the coordinators that govern it.
    pub(crate) fn reservations(&self) -> Vec<Reservation> {
        let of_coordinators = self.coordinators().iter().filter_map(|coordinator| coordinator.reservation());
        self.limits.reservations.iter().cloned().chain(of_coordinators).collect()
    }

    pub(crate) fn grant(&self) -> Option<GrantId> {
        self.held_grant().map(|held_grant| held_grant.grant())
    }

    pub(crate) fn action(&self) -> Action {
        if self.client_executed { Action::ClientExecuted } else { self.tool.action }
    }

    pub(crate) fn is_client_executed(&self) -> bool {
        self.action() == Action::ClientExecuted
    }

    /// Whether calls through both have the same action with the same arguments: the same definition of the same tool,
    /// and the same state of the same credential.
    fn is_same_action(&self, other: &Self) -> bool {
        let same_credential = match (self.held_grant(), other.held_grant()) {
            (Some(mine), Some(theirs)) => {
                let (mine, theirs) = (&mine.credential, &theirs.credential);
                mine.id == theirs.id && mine.version == theirs.version && mine.metadata == theirs.metadata
            }
            (None, None) => true,
            _ => false,
        };
        let (mine, theirs) = (&self.tool, &other.tool);
        let same_tool = || {
            mine.service == theirs.service
                && mine.name == theirs.name
                && mine.version == theirs.version
                && mine.action == theirs.action
                && mine.category == theirs.category
                && mine.base_url == theirs.base_url
                && mine.definition == theirs.definition
        };
        same_credential && self.client_executed == other.client_executed && (Arc::ptr_eq(mine, theirs) || same_tool())
    }
}

/// A candidate that passes all checks, with what its action sends.
#[derive(Debug, Clone)]
pub(crate) struct EligibleGrant {
    pub(crate) candidate: Candidate,
    /// The request without the credential, if the action sends one.
    pub(crate) request: Option<Box<RenderedRequest>>,
    pub(crate) credential: Option<Box<CredentialUse>>,
}

/// A credential, and how a request uses it.
#[derive(Debug, Clone)]
pub(crate) struct CredentialUse {
    pub(crate) held_grant: Arc<HeldGrant>,
    pub(crate) adapter: AdapterName,
    pub(crate) placement: AuthPlacement,
}

/// Eligible grants that lead to the same action. A decision for one of them holds for all, and for nothing else: grants
/// on another credential or definition form another alternative, which is guarded and approved separately.
///
/// INVARIANT: all have the same tool, definition and credential as the first.
#[derive(Debug, Clone)]
pub(crate) struct Alternative {
    pub(crate) first: EligibleGrant,
    others: Vec<EligibleGrant>,
}

impl Alternative {
    /// Groups eligible grants into alternatives, keeping their order.
    pub(crate) fn sort(eligible_grants: Vec<EligibleGrant>) -> Vec<Self> {
        let mut alternatives: Vec<Self> = Vec::new();
        for eligible in eligible_grants {
            match alternatives.iter_mut().find(|known| known.first.candidate.is_same_action(&eligible.candidate)) {
                Some(known) => known.others.push(eligible),
                None => alternatives.push(Self { first: eligible, others: Vec::new() }),
            }
        }
        alternatives
    }

    /// In order of preference.
    pub(crate) fn eligible_grants(&self) -> impl Iterator<Item = &EligibleGrant> {
        std::iter::once(&self.first).chain(&self.others)
    }

    pub(crate) fn into_eligible_grants(self) -> impl Iterator<Item = EligibleGrant> {
        std::iter::once(self.first).chain(self.others)
    }
}

impl EligibleGrant {
    /// INVARIANT: `constrain` passes nothing whose connection could not be parsed.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.candidate.held_grant().and_then(|held_grant| held_grant.connection.as_ref().ok())
    }

    pub(crate) fn action(&self) -> Action {
        self.candidate.action()
    }

    /// The first coordinator whose guardrails demand an approval of each call of the tool.
    pub(crate) fn asking_coordinator(&self) -> Option<&Coordinator> {
        let tool = &self.candidate.tool;
        let asks = |one: &&Arc<Coordinator>| {
            let scope = tool.definition.scope.as_str();
            one.guardrails.asks_for(tool.qualified_name(), tool.service.as_str(), scope)
        };
        self.candidate.coordinators().iter().find(asks).map(|one| &**one)
    }

    /// The request that the gate sends, if any.
    pub(crate) fn sent(&self) -> Option<&RenderedRequest> {
        self.request.as_deref().filter(|_| !self.candidate.is_client_executed())
    }
}
