//! Administrative changes by callers. An [`Administration`] is an [`Operation`] by the one implementation below, which
//! checks the caller's authority in the transaction that makes the change, before anything is read. Only that check
//! yields the audit context that a change is recorded under, so it cannot be bypassed.

use std::future::Future;
use std::ops::Deref;

use toolgate_gate::ports::ledger::{AuditContext, Mandate, Right};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::id::KeyId;
use toolgate_model::permission::Permission;
use toolgate_model::principal::Principal;

use super::{Operation, principals};
use crate::sql::Failure;
use crate::transaction::{Transaction, values};

/// A change by a caller, in one transaction.
pub trait Administration: Send + Sync + 'static {
    type Output: Send + 'static;

    /// As in [`Operation`].
    const CHANGES_AUTHORITY: bool = true;

    fn mandate(&self) -> &Mandate;

    fn perform<T: Transaction>(
        &self,
        transaction: &mut T,
        by: &Entitled<'_>,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// The actor of a change, after its authority was checked in this transaction, for the lifetime of the transaction.
pub struct Entitled<'a> {
    audit: &'a AuditContext,
    /// The principal that the command was decided on; `None` for Toolgate itself.
    relied_on: Option<&'a Principal>,
}

impl Deref for Entitled<'_> {
    type Target = AuditContext;

    fn deref(&self) -> &AuditContext {
        self.audit
    }
}

impl Entitled<'_> {
    /// Whether the actor has the permission. Toolgate itself has all.
    pub fn may(&self, permission: Permission) -> bool {
        self.relied_on.is_none_or(|own| own.permissions.has(permission))
    }

    /// Refuses to administer a principal with permissions beyond those of the actor.
    pub fn require_within_own(&self, principal: &Principal) -> Result<(), Refusal> {
        match self.relied_on.and_then(|own| principal.permissions.first_beyond(&own.permissions)) {
            None => Ok(()),
            Some(beyond) => {
                let reason = format!("this exceeds your own permissions: you do not have {beyond}");
                Err(Refusal::new(Code::PermissionDenied, reason).with("required_permission", beyond))
            }
        }
    }
}

impl<A: Administration> Operation for A {
    type Output = <A as Administration>::Output;

    const CHANGES_AUTHORITY: bool = <A as Administration>::CHANGES_AUTHORITY;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<<A as Administration>::Output, Failure> {
        let by = check(transaction, self.mandate()).await?;
        self.perform(transaction, &by).await
    }
}

/// Checks the authority for a change. What it is based on stays locked until the transaction ends.
async fn check<'a, T: Transaction>(transaction: &mut T, mandate: &'a Mandate) -> Result<Entitled<'a>, Failure> {
    let (audit, right) = mandate.parts();
    let Right::Key { key, principal } = right else { return Ok(Entitled { audit, relied_on: None }) };
    // In the global lock order: principals, keys.
    let now = principals::locked(transaction, &audit.tenant, &audit.actor, T::FOR_SHARE).await?;
    check_key(transaction, audit, *key).await?;
    let now = now.filter(|now| now.removed_at.is_none());
    let now = now.ok_or_else(|| Refusal::new(Code::KeyRevoked, format!("`{}` was removed", audit.actor)))?;
    require_nothing_taken(principal, &now)?;
    Ok(Entitled { audit, relied_on: Some(principal) })
}

async fn check_key<T: Transaction>(transaction: &mut T, audit: &AuditContext, key: KeyId) -> Result<(), Failure> {
    let sql = format!(
        "SELECT revoked_at, expires_at FROM keys WHERE tenant = $1 AND id = $2 AND principal = $3{}",
        T::FOR_SHARE
    );
    let row = transaction.query_optional(&sql, values![&audit.tenant, key, &audit.actor]).await?;
    let (revoked, end) = match &row {
        Some(row) => (row.optional_time(0)?.is_some(), row.optional_time(1)?),
        None => (true, None),
    };
    if revoked {
        return Err(Refusal::new(Code::KeyRevoked, format!("key {key} was revoked; create a new one")).into());
    }
    match end.filter(|end| *end <= audit.time) {
        None => Ok(()),
        Some(end) => {
            let reason = format!("key {key} expired at {end}; create a new one");
            Err(Refusal::new(Code::KeyExpired, reason).into())
        }
    }
}

/// Refuses a caller that has lost something since its command was decided. Other changes do not matter: additional
/// permissions and scopes only allow more.
fn require_nothing_taken(before: &Principal, now: &Principal) -> Result<(), Refusal> {
    if before.revision == now.revision {
        return Ok(());
    }
    if let Some(taken) = before.permissions.first_beyond(&now.permissions) {
        let reason = format!("the permission {taken} was taken from `{}` while this request was in flight", now.id);
        return Err(Refusal::new(Code::PermissionDenied, reason).with("required_permission", taken));
    }
    if let Some(taken) = before.scopes.first_beyond(&now.scopes) {
        let reason = format!("the scope `{taken}` was taken from `{}` while this request was in flight", now.id);
        return Err(Refusal::new(Code::PermissionDenied, reason).with("required_scope", taken));
    }
    Ok(())
}
