//! Vaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::Paging;
use crate::reply::{Deleted, NextCursor, Revision};

endpoints! {
    tag "vaults" = "Vaults hold credentials. A principal sees its own, an administrator sees all.";

    /// Create a vault
    ///
    /// Needs `tools.manage`.
    CreateVault = POST "/api/v1/vaults" as "create_vault" {
        body: VaultRequest = {"name": "production"},
        reply: CREATED Vault = "The vault.",
    }

    /// List vaults
    ///
    /// Needs `tools.manage`.
    ListVaults = GET "/api/v1/vaults" as "list_vaults" {
        query: Paging,
        reply: OK VaultPage = "A page of vaults.",
    }

    /// Show a vault
    ///
    /// Needs `tools.manage`.
    ShowVault = GET "/api/v1/vaults/{vault_id}" as "show_vault" {
        path: VaultId,
        reply: OK Vault = "The vault.",
    }

    /// Delete a vault with its credentials and their grants
    ///
    /// Needs `tools.manage`.
    DeleteVault = DELETE "/api/v1/vaults/{vault_id}" as "delete_vault" {
        path: VaultId,
        reply: OK DeletedVault = "What was revoked with it.",
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultRequest {
    /// The caller where absent; another principal needs `agents.act_as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<PrincipalId>,
    pub name: Line,
}

impl RequestBody for VaultRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Vault {
    pub id: VaultId,
    pub owner_id: PrincipalId,
    pub name: Line,
    pub created_at: Timestamp,
    pub credentials: Vec<CredentialId>,
}

impl Vault {
    pub fn new(vault: toolgate_model::credential::Vault, credentials: Vec<CredentialId>) -> Self {
        Self { id: vault.id, owner_id: vault.owner, name: vault.name, created_at: vault.created_at, credentials }
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct VaultPage {
    pub vaults: Vec<Vault>,
    pub next_cursor: NextCursor,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeletedVault {
    pub status: Deleted,
    pub vault_id: VaultId,
    pub revoked_credentials: u64,
    pub revoked_grants: u64,
    pub revision: Revision,
}
