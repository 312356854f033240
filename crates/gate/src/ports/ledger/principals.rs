//! Commands on tenants, principals and keys.

use toolgate_model::certificate::CertificateName;
use toolgate_model::descriptor::ToolId;
use toolgate_model::id::KeyId;
use toolgate_model::key::KeyDigest;
use toolgate_model::principal::{Principal, PrincipalChanges, PrincipalId, Tenant};
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::{Mandate, Revision};

/// A key to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Its name.
    pub id: KeyId,
    /// Whose it is.
    pub principal: PrincipalId,
    /// What it is looked up by.
    pub digest: KeyDigest,
    /// Its first letters, or the name of the certificate.
    pub hint: String,
    /// The client certificate that it stands for; there is nothing secret to present then.
    pub certificate: Option<CertificateName>,
    /// What people call it.
    pub label: Option<Line>,
    /// Until when it is accepted.
    pub expires_at: Option<Timestamp>,
}

/// Makes a tenant, its administrator and the administrator's first key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTenant {
    /// Who and when, and by which right.
    pub stamp: Mandate,
    /// The tenant.
    pub tenant: Tenant,
    /// Its administrator.
    pub administrator: Principal,
    /// The administrator's key.
    pub key: NewKey,
}

/// Registers a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatePrincipal {
    /// Who and when, and by which right.
    pub stamp: Mandate,
    /// The principal.
    pub principal: Principal,
    /// What its allowlist names and there is not.
    pub unresolved: Vec<ToolId>,
}

/// Changes a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatePrincipal {
    /// Who and when, and by which right.
    pub stamp: Mandate,
    /// Which.
    pub id: PrincipalId,
    /// The revision that is changed; another one now is a conflict.
    pub expected_revision: u64,
    /// What is to be different.
    pub changes: PrincipalChanges,
    /// What the new allowlist names and there is not.
    pub unresolved: Vec<ToolId>,
}

/// Removes a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovePrincipal {
    /// Who and when, and by which right.
    pub stamp: Mandate,
    /// Which.
    pub id: PrincipalId,
}

/// What ended with a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// Keys.
    pub keys: u64,
    /// Grants, those delegated from its own included.
    pub grants: u64,
    /// From which revision on.
    pub revision: Revision,
}

/// Adds a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateKey {
    /// Who and when, and by which right.
    pub stamp: Mandate,
    /// The key.
    pub key: NewKey,
}

/// Ends a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeKey {
    /// Who and when, and by which right.
    pub stamp: Mandate,
    /// Which.
    pub id: KeyId,
}
