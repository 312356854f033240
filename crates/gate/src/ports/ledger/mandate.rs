//! The right by which something is administered. A request may take as long as its sender likes between the headers, in
//! which the key stands, and the body: what was right when the key was shown need not be any more when the change is
//! made. So the right travels with the command, and the transaction that makes the change checks it again.

use std::sync::Arc;

use toolgate_model::id::KeyId;
use toolgate_model::principal::{Principal, PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::AuditContext;

/// Who changes something, where and when, and by which right. Every administrative command carries one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mandate {
    audit: AuditContext,
    right: Right,
}

/// What entitles to an administrative change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Right {
    /// A key, and the principal as it was when that was shown. Every decision about the command was made on this state:
    /// the key must still be accepted, the principal still be there, and nothing may have been taken from it.
    Key {
        /// Which.
        key: KeyId,
        /// Whose.
        principal: Arc<Principal>,
    },
    /// No caller's: the first start, an operator with the ledger itself in hand, or a call that was admitted before.
    Own,
}

impl Mandate {
    /// Of a principal that has shown a key.
    pub fn of_key(key: KeyId, principal: Arc<Principal>, time: Timestamp) -> Self {
        let audit = AuditContext { tenant: principal.tenant.clone(), actor: principal.id.clone(), time };
        Self { audit, right: Right::Key { key, principal } }
    }

    /// Of Toolgate itself. What a caller asks for never rests on this.
    pub fn own(audit: AuditContext) -> Self {
        Self { audit, right: Right::Own }
    }

    /// The tenant in which the change is made.
    pub fn tenant(&self) -> &TenantId {
        &self.audit.tenant
    }

    /// Who makes it.
    pub fn actor(&self) -> &PrincipalId {
        &self.audit.actor
    }

    /// When.
    pub fn time(&self) -> Timestamp {
        self.audit.time
    }

    /// The audit context, together with the right that must be checked before anything is written under it.
    pub fn parts(&self) -> (&AuditContext, &Right) {
        (&self.audit, &self.right)
    }
}
