//! Tenants.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::principal::{PrincipalId, TenantId};
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
pub struct Tenant {
    pub id: TenantId,
    pub name: Option<Line>,
    pub created_at: Timestamp,
}

impl From<toolgate_model::principal::Tenant> for Tenant {
    fn from(tenant: toolgate_model::principal::Tenant) -> Self {
        Self { id: tenant.id, name: tenant.name, created_at: tenant.created_at }
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
