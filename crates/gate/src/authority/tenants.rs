//! Tenants, created by the administrator of the platform.

use toolgate_model::key::ApiKey;
use toolgate_model::permission::{Permission, PermissionSet};
use toolgate_model::principal::{Principal, PrincipalId, PrincipalKind, Tenant, TenantId};
use toolgate_model::text::Line;

use super::principals::new_key;
use crate::authority::Administration;
use crate::identify::Caller;
use crate::ports::ledger::{CreateTenant, Page, PageRequest};
use crate::refusal::{Code, Refusal};

impl Administration {
    /// Creates a tenant. Only this result contains the key of its administrator.
    pub async fn create_tenant(
        &self,
        caller: &Caller,
        id: TenantId,
        name: Option<Line>,
    ) -> Result<(Tenant, PrincipalId, ApiKey), Refusal> {
        require_platform(caller)?;
        let audit = caller.mandate(self.clock.now());
        let (key, secret) = new_key(&self.ids, PrincipalId::administrator(), audit.time())?;
        let tenant = Tenant::new(id.clone(), name, audit.time());
        let administrator = Principal::new(
            id,
            PrincipalId::administrator(),
            PrincipalKind::User,
            PermissionSet::of_a_tenant_administrator(),
            audit.time(),
        );
        self.tenants.create_tenant(CreateTenant { audit, tenant: tenant.clone(), administrator, key }).await?;
        Ok((tenant, PrincipalId::administrator(), secret))
    }

    pub async fn tenants(&self, caller: &Caller, page: PageRequest) -> Result<Page<Tenant>, Refusal> {
        require_platform(caller)?;
        self.tenants.tenants(page).await
    }

    /// Returns a tenant. The administrator of the platform can read any, other callers only their own.
    pub async fn tenant(&self, caller: &Caller, id: &TenantId) -> Result<Tenant, Refusal> {
        let missing = || Refusal::new(Code::TenantNotFound, format!("there is no tenant `{id}`"));
        if id != caller.tenant() && require_platform(caller).is_err() {
            return Err(missing());
        }
        self.tenants.tenant(id).await?.ok_or_else(missing)
    }
}

/// The permission has a meaning only in the tenant from which the platform is administered.
pub(crate) fn require_platform(caller: &Caller) -> Result<(), Refusal> {
    caller.require(Permission::ManageTenants)?;
    if *caller.tenant() == TenantId::default_tenant() {
        return Ok(());
    }
    Err(Refusal::new(Code::PermissionDenied, "only the administrator of the tenant `default` may do this"))
}
