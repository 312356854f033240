//! The authority for an administrative change. A request may take any time between its headers, which contain the key,
//! and its body: authority that was valid when the key was presented may have ended when the change is made. So it
//! travels with the command, and the transaction that makes the change checks it again.

use std::sync::Arc;

use toolgate_model::id::KeyId;
use toolgate_model::principal::{Principal, PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::AuditContext;

/// Tenant, actor and time of a change, and the authority for it. Every administrative command has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mandate {
    audit: AuditContext,
    right: Right,
}

/// The authority for an administrative change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Right {
    /// A key, and the principal when the key was presented. Every decision about the command was made on this state:
    /// the key must still be accepted, the principal must still exist, and must not have lost any permission or scope.
    Key { key: KeyId, principal: Arc<Principal> },
    /// Without a caller: the first start, an operator with access to the ledger itself, or a call that was admitted
    /// before.
    Own,
}

impl Mandate {
    /// For a principal that has presented a key.
    pub fn of_key(key: KeyId, principal: Arc<Principal>, time: Timestamp) -> Self {
        let audit = AuditContext { tenant: principal.tenant.clone(), actor: principal.id.clone(), time };
        Self { audit, right: Right::Key { key, principal } }
    }

    /// For Toolgate itself. A caller's request never uses this.
    pub fn own(audit: AuditContext) -> Self {
        Self { audit, right: Right::Own }
    }

    pub fn tenant(&self) -> &TenantId {
        &self.audit.tenant
    }

    pub fn actor(&self) -> &PrincipalId {
        &self.audit.actor
    }

    pub fn time(&self) -> Timestamp {
        self.audit.time
    }

    /// The audit context, with the authority that must be checked before anything is written.
    pub fn parts(&self) -> (&AuditContext, &Right) {
        (&self.audit, &self.right)
    }
}
