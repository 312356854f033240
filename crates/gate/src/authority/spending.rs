//! Budgets with what was used, and stopping and resuming calls. No agent changes what limits it.

use toolgate_model::permission::Permission;
use toolgate_model::principal::{PrincipalId, PrincipalKind, Tenant, TenantId};
use toolgate_model::spending::{Budget, StopScope};
use toolgate_model::text::Line;

use super::tenants::require_platform;
use crate::authority::Administration;
use crate::identify::Caller;
use crate::ports::ledger::{BudgetUse, Page, PageRequest, SetTenantBudget, StopCalls, StopOutcome};
use crate::refusal::{Code, Refusal};

impl Administration {
    /// Sets or removes the budget of a tenant: of its own by an administrator of the tenant who is no agent, of another one
    /// by the administrator of the platform.
    pub async fn set_tenant_budget(
        &self,
        caller: &Caller,
        tenant: &TenantId,
        budget: Option<Budget>,
    ) -> Result<Tenant, Refusal> {
        self.spending.set_tenant_budget(self.tenant_budget(caller, tenant, budget)?).await
    }

    /// The command that sets or removes the budget of a tenant.
    pub(super) fn tenant_budget(
        &self,
        caller: &Caller,
        tenant: &TenantId,
        budget: Option<Budget>,
    ) -> Result<SetTenantBudget, Refusal> {
        require_manager_of(caller, tenant)?;
        let audit = caller.mandate(self.clock.now());
        Ok(SetTenantBudget { audit, tenant: tenant.clone(), budget })
    }

    /// Stops calls. Every admission after this returns sees it, on every replica.
    pub async fn stop_calls(
        &self,
        caller: &Caller,
        scope: StopScope,
        reason: Option<Line>,
    ) -> Result<StopOutcome, Refusal> {
        self.require_may_stop(caller, &scope)?;
        let audit = caller.mandate(self.clock.now());
        let stopped = self.spending.stop_calls(StopCalls { audit, scope, reason, resume: false }).await;
        // Also after a failure: part of it may have been done.
        self.stops.look();
        self.detached_runs.wake();
        stopped
    }

    /// Resumes what was stopped.
    pub async fn resume_calls(
        &self,
        caller: &Caller,
        scope: StopScope,
        reason: Option<Line>,
    ) -> Result<StopOutcome, Refusal> {
        self.require_may_stop(caller, &scope)?;
        if scope == StopScope::Agent(caller.id().clone()) {
            let reason = "you cannot resume yourself; another administrator must";
            return Err(Refusal::new(Code::PermissionDenied, reason));
        }
        let audit = caller.mandate(self.clock.now());
        self.spending.stop_calls(StopCalls { audit, scope, reason, resume: true }).await
    }

    fn require_may_stop(&self, caller: &Caller, scope: &StopScope) -> Result<(), Refusal> {
        match scope {
            StopScope::Agent(_) => caller.require(Permission::ManageAgents),
            StopScope::Tenant(tenant) => require_manager_of(caller, tenant),
            StopScope::Gate => {
                require_platform(caller)?;
                require_no_agent(caller)
            }
        }
    }

    /// The budgets of the tenant and of its agents with what was used, or those of one agent. Every principal may read its
    /// own.
    pub async fn budgets(
        &self,
        caller: &Caller,
        agent: Option<PrincipalId>,
        page: PageRequest,
    ) -> Result<Page<BudgetUse>, Refusal> {
        let sees_all = caller.may(Permission::ManageAgents) || caller.may(Permission::ReadAudit);
        let agent = match agent {
            None if sees_all => None,
            None => Some(caller.id().clone()),
            Some(agent) if sees_all || agent == *caller.id() => Some(agent),
            Some(agent) => {
                let reason = format!("there is no agent `{agent}`");
                return Err(Refusal::new(Code::AgentNotFound, reason).with("agent_id", agent));
            }
        };
        self.spending.budgets(caller.tenant(), agent.as_ref(), self.clock.now(), page).await
    }
}

fn require_manager_of(caller: &Caller, tenant: &TenantId) -> Result<(), Refusal> {
    if tenant == caller.tenant() {
        caller.require(Permission::ManageAgents)?;
    } else if require_platform(caller).is_err() {
        // Another tenant is as unknown as any that does not exist.
        return Err(Refusal::new(Code::TenantNotFound, format!("there is no tenant `{tenant}`")));
    }
    require_no_agent(caller)
}

/// A tenant's limits also limit its agents, whatever their permissions are.
fn require_no_agent(caller: &Caller) -> Result<(), Refusal> {
    if caller.principal().kind == PrincipalKind::Agent {
        let reason = "an agent cannot change what limits a tenant; a user or a service must";
        return Err(Refusal::new(Code::PermissionDenied, reason));
    }
    Ok(())
}
