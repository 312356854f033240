//! Tenants.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::spending::{Budget, Stop};
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::Paging;
use crate::reply::{NextCursor, ShownKey};

endpoints! {
    tag "tenants" = "No object, key or grant is shared between tenants.";

    /// Create a tenant with its administrator
    ///
    /// Needs `tenants.manage` in the tenant `default`. The administrator's key is in this response and nowhere else.
    CreateTenant = POST "/api/v1/tenants" as "create_tenant" {
        body: TenantRequest = {"id": "acme", "name": "Acme Inc."},
        reply: CREATED NewTenant = "The tenant.",
    }

    /// List tenants by id
    ///
    /// Needs `tenants.manage` in the tenant `default`.
    ListTenants = GET "/api/v1/tenants" as "list_tenants" {
        query: Paging,
        reply: OK TenantPage = "A page of tenants.",
    }

    /// Show a tenant
    ///
    /// Every principal may read its own.
    ShowTenant = GET "/api/v1/tenants/{tenant_id}" as "show_tenant" {
        path: TenantId,
        reply: OK Tenant = "The tenant.",
    }

    /// Change the budget of a tenant
    ///
    /// The own tenant needs `agents.manage` and a caller that is not an agent, another one `tenants.manage` in the tenant
    /// `default`.
    UpdateTenant = PATCH "/api/v1/tenants/{tenant_id}" as "update_tenant" {
        path: TenantId,
        body: TenantChanges = {"budget": {"calls_per_day": 10000, "cost_per_day_usd": 50}},
        reply: OK Tenant = "The tenant as it is now.",
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantRequest {
    pub id: TenantId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Line>,
}

impl RequestBody for TenantRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantChanges {
    /// How much its agents may call and spend together; `null` removes it.
    #[schemars(with = "Option<Budget>")]
    #[serde(deserialize_with = "required")]
    pub budget: Option<Budget>,
}

impl RequestBody for TenantChanges {}

/// Not absent: a change without a member changes nothing.
fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Budget>, D::Error> {
    Option::deserialize(deserializer)
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tenant {
    pub id: TenantId,
    pub name: Option<Line>,
    pub created_at: Timestamp,
    /// How much its agents may call and spend together; `null` if it has no budget.
    pub budget: Option<Budget>,
    /// Who has stopped its calls, and when; `null` if they are not stopped.
    pub stopped: Option<Stop>,
    /// The same for the calls of all tenants.
    pub gate_stopped: Option<Stop>,
}

impl From<toolgate_model::principal::Tenant> for Tenant {
    fn from(tenant: toolgate_model::principal::Tenant) -> Self {
        Self {
            id: tenant.id,
            name: tenant.name,
            created_at: tenant.created_at,
            budget: tenant.budget,
            stopped: tenant.stopped,
            gate_stopped: tenant.gate_stopped,
        }
    }
}

/// A tenant and the key of its administrator.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewTenant {
    #[serde(flatten)]
    pub tenant: Tenant,
    pub administrator: NewAdministrator,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct NewAdministrator {
    pub id: PrincipalId,
    pub key: ShownKey,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TenantPage {
    pub tenants: Vec<Tenant>,
    pub next_cursor: NextCursor,
}
