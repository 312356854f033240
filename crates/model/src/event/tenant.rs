//! Tenants.

use serde::{Deserialize, Serialize};

use crate::principal::TenantId;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TenantCreated {
    pub tenant_id: TenantId,
}
