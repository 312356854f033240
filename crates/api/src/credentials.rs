//! Credentials, at the path of their vault as in the RFC, and at their own path as in its Python client.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::credential::{AuthType, CredentialStatus, ServiceName};
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::scope::{Scope, ScopeSet};
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::Paging;
use crate::reading::present;
use crate::reply::{NextCursor, Revision, Revoked};

endpoints! {
    tag "credentials" = "Access to a service. The material is sealed and never shown.";

    /// Add a credential to a vault
    ///
    /// Needs `tools.manage`.
    CreateCredentialInVault = POST "/api/v1/vaults/{vault_id}/credentials" as "create_credential_in_vault" {
        path: VaultId,
        body: CredentialInVaultRequest = {
            "service": "stripe",
            "label": "Stripe, test",
            "auth_type": "api_key",
            "scopes_available": ["charges.create", "charges.read"],
            "metadata": {"base_url": "https://api.example.com"},
            "material": {"api_key": "not-a-real-key"}
        },
        reply: CREATED Credential = "The credential.",
    }

    /// List the credentials of a vault
    ///
    /// Needs `tools.manage`.
    ListCredentials = GET "/api/v1/vaults/{vault_id}/credentials" as "list_credentials" {
        path: VaultId,
        query: Paging,
        reply: OK CredentialPage = "A page of credentials.",
    }

    /// Add a credential
    ///
    /// Needs `tools.manage`. The same as at the path of the vault.
    CreateCredential = POST "/api/v1/credentials" as "create_credential" {
        body: CredentialRequest,
        reply: CREATED Credential = "The credential.",
        errors: [NotFound],
    }

    /// Show a credential without its material
    ///
    /// Needs `tools.manage`.
    ShowCredential = GET "/api/v1/credentials/{credential_id}" as "show_credential" {
        path: CredentialId,
        reply: OK Credential = "The credential.",
    }

    /// Revoke a credential with its grants
    ///
    /// Needs `tools.manage`. The material is destroyed.
    RevokeCredential = DELETE "/api/v1/credentials/{credential_id}" as "revoke_credential" {
        path: CredentialId,
        body: Reason,
        reply: OK RevokedCredential = "What was revoked with it.",
    }

    /// Replace the material of a credential
    ///
    /// Needs `tools.manage`.
    RotateCredential = PATCH "/api/v1/credentials/{credential_id}/rotate" as "rotate_credential" {
        path: CredentialId,
        body: RotationRequest = {"material": {"api_key": "another-one"}},
        reply: OK Credential = "The credential.",
    }

    /// Check that the material can be unsealed
    ///
    /// Needs `tools.manage`. Shows nothing of the material.
    VerifyCredential = POST "/api/v1/credentials/{credential_id}/verify" as "verify_credential" {
        path: CredentialId,
        reply: OK VerifiedCredential = "The state of the material.",
    }
}

// No request with material has `Debug`.

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CredentialRequest {
    // A text that is not an id names no vault.
    #[schemars(with = "VaultId")]
    pub vault_id: String,
    /// The service that it opens, such as `stripe`.
    pub service: ServiceName,
    pub label: Line,
    #[serde(default = "api_key")]
    pub auth_type: AuthType,
    #[serde(default)]
    pub scopes_available: ScopeSet,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    // Read as any JSON: the deserializer must not quote a mistake in it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(with = "Option<Material>")]
    pub material: Value,
    /// A time in the future; no end where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl RequestBody for CredentialRequest {}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CredentialInVaultRequest {
    /// The vault of the path, or absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<VaultId>")]
    pub vault_id: Option<String>,
    /// The service that it opens, such as `stripe`.
    pub service: ServiceName,
    pub label: Line,
    #[serde(default = "api_key")]
    pub auth_type: AuthType,
    #[serde(default)]
    pub scopes_available: ScopeSet,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(with = "Option<Material>")]
    pub material: Value,
    /// A time in the future; no end where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl RequestBody for CredentialInVaultRequest {}

impl CredentialInVaultRequest {
    /// The same request at the path without the vault.
    pub fn in_vault(self, vault: VaultId) -> CredentialRequest {
        CredentialRequest {
            vault_id: vault.to_string(),
            service: self.service,
            label: self.label,
            auth_type: self.auth_type,
            scopes_available: self.scopes_available,
            metadata: self.metadata,
            material: self.material,
            expires_at: self.expires_at,
        }
    }
}

fn api_key() -> AuthType {
    AuthType::ApiKey
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotationRequest {
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(with = "Option<Material>")]
    pub material: Value,
    /// Replaces the present metadata; kept if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// Stays where absent; `null` is no end.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub expires_at: Option<Option<Timestamp>>,
}

impl RequestBody for RotationRequest {}

/// Why, for the audit log.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Line>,
}

impl RequestBody for Reason {
    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}

/// Values that may be shown, such as `base_url`. Secrets under known names are moved into the material.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Metadata(pub Map<String, Value>);

/// The secrets, by name. Which are needed depends on `auth_type`.
#[derive(JsonSchema)]
#[schemars(extend("maxProperties" = 32, "propertyNames" = {"pattern": "^[A-Za-z0-9._:@-]{1,128}$"}))]
#[expect(dead_code, reason = "only its schema is used")]
struct Material(BTreeMap<String, MaterialText>);

#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
struct MaterialText(#[schemars(length(min = 1, max = 65536))] String);

/// A credential, without its material.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Credential {
    pub id: CredentialId,
    pub vault_id: VaultId,
    pub service: ServiceName,
    pub label: Line,
    pub auth_type: AuthType,
    pub scopes_available: ScopeSet,
    pub metadata: Metadata,
    /// The same as `metadata`.
    pub credential_metadata: Metadata,
    pub status: CredentialStatus,
    /// How often material was set; 0 while there is none.
    pub version: u32,
    /// The names of the secrets.
    #[schemars(with = "Vec<Scope>")]
    pub material_fields: Vec<String>,
    pub created_at: Timestamp,
    pub rotated_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl Credential {
    pub fn new(credential: toolgate_model::credential::Credential, now: Timestamp) -> Self {
        Self {
            status: credential.status(now),
            id: credential.id,
            vault_id: credential.vault,
            service: credential.service,
            label: credential.label,
            auth_type: credential.auth_type,
            scopes_available: credential.scopes_available,
            metadata: Metadata(credential.metadata.clone()),
            credential_metadata: Metadata(credential.metadata),
            version: credential.version,
            material_fields: credential.material_fields,
            created_at: credential.created_at,
            rotated_at: credential.rotated_at,
            expires_at: credential.expires_at,
            revoked_at: credential.revoked_at,
        }
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CredentialPage {
    pub credentials: Vec<Credential>,
    pub next_cursor: NextCursor,
}

/// What was revoked with a credential.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RevokedCredential {
    pub status: Revoked,
    pub credential_id: CredentialId,
    pub affected_grants_count: u64,
    pub revision: Revision,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedCredential {
    pub credential_id: CredentialId,
    pub version: u32,
    pub status: CredentialStatus,
    pub material: MaterialState,
}

// No comments on the values: they would turn it into a choice between schemas.
/// It can be unsealed, is still to come, or was destroyed with the credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum MaterialState {
    Destroyed,
    Intact,
    None,
}
