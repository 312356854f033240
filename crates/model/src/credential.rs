//! Vaults and credentials: what is known about a secret without the secret.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::{CredentialId, VaultId};
use crate::principal::{PrincipalId, TenantId};
use crate::scope::ScopeSet;
use crate::text::{Line, identifiers};
use crate::time::Timestamp;

pub use self::material::{
    MaterialError, check_material, is_public_field, lift_secrets, material_from_json, refuse_leaks,
};

mod material;

identifiers! {
    /// The name of an external service (`stripe`).
    ServiceName;
}

impl ServiceName {
    /// The qualified name of one of its tools (`stripe.charges.read`).
    pub fn with_tool(&self, tool: &str) -> String {
        [self.as_str(), ".", tool].concat()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vault {
    pub id: VaultId,
    pub tenant: TenantId,
    /// The user or organisation that owns it.
    pub owner: PrincipalId,
    pub name: Line,
    pub created_at: Timestamp,
}

/// How a credential authenticates to its service (RFC-0014 §1.2, and `webhook`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthType {
    /// A key in a header or in the query.
    ApiKey,
    /// User name and password.
    BasicAuth,
    /// A token in the `Authorization` header.
    BearerToken,
    /// A connection string of a database or broker.
    ConnectionString,
    /// Anything else.
    Custom,
    /// Client id and secret that are exchanged for a token.
    #[serde(rename = "oauth2_client_credentials")]
    OAuth2ClientCredentials,
    /// An access token, optionally with a refresh token.
    #[serde(rename = "oauth2_token")]
    OAuth2Token,
    /// A secret that signs outgoing messages.
    Webhook,
}

impl AuthType {
    pub const ALL: [Self; 8] = [
        Self::ApiKey,
        Self::BasicAuth,
        Self::BearerToken,
        Self::ConnectionString,
        Self::Custom,
        Self::OAuth2ClientCredentials,
        Self::OAuth2Token,
        Self::Webhook,
    ];

    /// The stored and displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::BasicAuth => "basic_auth",
            Self::BearerToken => "bearer_token",
            Self::ConnectionString => "connection_string",
            Self::Custom => "custom",
            Self::OAuth2ClientCredentials => "oauth2_client_credentials",
            Self::OAuth2Token => "oauth2_token",
            Self::Webhook => "webhook",
        }
    }

    /// The fields of the material that a person is asked for; none if they are not fixed.
    pub fn usual_fields(self) -> &'static [&'static str] {
        match self {
            Self::ApiKey => &["api_key"],
            Self::BasicAuth => &["username", "password"],
            Self::BearerToken => &["token"],
            Self::ConnectionString => &["connection_string"],
            Self::Custom => &[],
            Self::OAuth2ClientCredentials => &["client_id", "client_secret"],
            Self::OAuth2Token => &["access_token", "refresh_token"],
            Self::Webhook => &["signing_secret"],
        }
    }

    /// Parses [`AuthType::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialStatus {
    Active,
    /// Its time is over; new material makes it active again.
    Expired,
    /// Final; its material is destroyed.
    Revoked,
}

/// A credential without its material.
#[derive(Debug, Clone, PartialEq)]
pub struct Credential {
    pub id: CredentialId,
    pub tenant: TenantId,
    pub vault: VaultId,
    pub service: ServiceName,
    pub label: Line,
    pub auth_type: AuthType,
    /// What it can do at the service.
    pub scopes_available: ScopeSet,
    /// Other data, which may be shown.
    pub metadata: Map<String, Value>,
    /// The version of the material, counted from 1; 0 while there is none.
    pub version: u32,
    /// The names of the sealed fields.
    pub material_fields: Vec<String>,
    pub created_at: Timestamp,
    /// When its material was last replaced.
    pub rotated_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl Credential {
    pub fn status(&self, now: Timestamp) -> CredentialStatus {
        if self.revoked_at.is_some() {
            CredentialStatus::Revoked
        } else if self.expires_at.is_some_and(|end| end <= now) {
            CredentialStatus::Expired
        } else {
            CredentialStatus::Active
        }
    }
}
