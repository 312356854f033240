//! What limits the calls of an agent besides its grants: budgets, and stops.

use async_trait::async_trait;
use toolgate_model::principal::{Principal, PrincipalId, Tenant, TenantId};
use toolgate_model::spending::{Account, Budget, Limit, Reservation, Stop, StopScope, Used};
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::{Mandate, Page, PageRequest};
use crate::refusal::{Code, Refusal};

/// Budgets and stops.
#[async_trait]
pub trait Spending: Send + Sync {
    /// Sets or removes the budget of a tenant.
    async fn set_tenant_budget(&self, command: SetTenantBudget) -> Result<Tenant, Refusal>;
    /// Stops or resumes calls. Every later admission sees it, on every replica.
    async fn stop_calls(&self, command: StopCalls) -> Result<StopOutcome, Refusal>;
    /// Whether calls of this agent are stopped, according to the newest state.
    async fn stopped(&self, tenant: &TenantId, agent: &PrincipalId) -> Result<Option<StoppedBy>, Refusal>;
    /// A number that changes whenever something is stopped or resumed, in any tenant.
    async fn limits_state(&self) -> Result<u64, Refusal>;
    /// Returns the accounts of budgets with what was used: first those of the tenant, then those of its agents by id, or
    /// only those of one agent.
    async fn budgets(
        &self,
        tenant: &TenantId,
        agent: Option<&PrincipalId>,
        now: Timestamp,
        page: PageRequest,
    ) -> Result<Page<BudgetUse>, Refusal>;
}

/// What limits the calls of an agent besides its grants, as its grants were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Counts the changes of budget and stops of the tenant.
    pub revision: u64,
    /// What each call of the agent reserves.
    pub reservations: Vec<Reservation>,
    /// Set while its calls are stopped.
    pub stopped: Option<StoppedBy>,
}

impl CallLimits {
    /// The limits that an agent and its tenant have.
    pub fn of(revision: u64, tenant: &Tenant, agent: Option<&Principal>) -> Self {
        let of_agent = agent.and_then(|agent| Some(agent.budget?.of_agent(&agent.id)));
        let of_tenant = tenant.budget.map(|budget| budget.of_tenant());
        Self {
            revision,
            reservations: of_agent.into_iter().chain(of_tenant).flatten().collect(),
            stopped: StoppedBy::of(tenant, agent),
        }
    }
}

/// What has stopped the calls of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedBy {
    pub scope: StopScope,
    pub stop: Stop,
}

impl StoppedBy {
    /// The widest stop that applies.
    pub fn of(tenant: &Tenant, agent: Option<&Principal>) -> Option<Self> {
        let gate = tenant.gate_stopped.clone().map(|stop| Self { scope: StopScope::Gate, stop });
        let own = || tenant.stopped.clone().map(|stop| Self { scope: StopScope::Tenant(tenant.id.clone()), stop });
        gate.or_else(own).or_else(|| agent.and_then(Self::of_principal))
    }

    pub fn of_principal(principal: &Principal) -> Option<Self> {
        let stop = principal.stopped.clone()?;
        Some(Self { scope: StopScope::Agent(principal.id.clone()), stop })
    }

    /// The refusal of a call.
    pub fn refusal(&self) -> Refusal {
        let what = match &self.scope {
            StopScope::Agent(agent) => format!("calls of `{agent}` are stopped"),
            StopScope::Tenant(tenant) => format!("all calls of the tenant `{tenant}` are stopped"),
            StopScope::Gate => "all calls of this gate are stopped".to_owned(),
        };
        let reason = match &self.stop.reason {
            Some(reason) => format!("{what}: {}", reason.as_str()),
            None => format!("{what}; an administrator can resume them"),
        };
        Refusal::new(Code::Stopped, reason).with("stopped", self.scope.as_str()).with("stopped_at", self.stop.at)
    }
}

#[derive(Debug, Clone)]
pub struct SetTenantBudget {
    pub audit: Mandate,
    pub tenant: TenantId,
    /// `None` removes it.
    pub budget: Option<Budget>,
}

/// Stops calls, or resumes them.
#[derive(Debug, Clone)]
pub struct StopCalls {
    pub audit: Mandate,
    pub scope: StopScope,
    pub reason: Option<Line>,
    pub resume: bool,
}

/// What a stop has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StopOutcome {
    /// Whether the state is another one now.
    pub changed: bool,
    /// The number of approvals that were cancelled with the calls that waited for them.
    pub cancelled_approvals: u64,
    /// The number of detached calls that were cancelled before they were admitted.
    pub cancelled_calls: u64,
    /// The number of calls that are executed at this moment.
    pub in_flight: u64,
}

/// An account of a budget, with what was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetUse {
    pub account: Account,
    pub limit: Limit,
    pub used: Used,
    /// When it began to count.
    pub since: Timestamp,
}
