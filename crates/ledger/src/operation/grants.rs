//! Making, delegating, pausing and taking back grants.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    AuditContext, CreateGrant, DelegateGrant, GrantFilter, Grants, Mandate, Page, PageRequest, ResumeGrant,
    RevokeGrant, Revoked, SuspendGrant,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, GrantCreated, GrantDelegated, GrantResumed, GrantSuspended};
use toolgate_model::grant::{DelegationError, DelegationRequest, Grant, GrantStatus, Lineage, Standing, Suspension};
use toolgate_model::id::GrantId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use super::administration::{Administration, Entitled};
use super::cascade::{Cascade, revoke_below};
use super::expiry::AnnounceExpired;
use super::grant_lists::{ListGrants, ReadDescendants, ReadLineage};
use super::grant_rows::{insert, share_lineage, take_grant};
use super::record::{Entry, record};
use super::{credentials, grant_rows, principals, work};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::Failure;
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Grants for SqlLedger<E> {
    async fn create_grant(&self, command: CreateGrant) -> Result<Grant, Refusal> {
        self.engine.write(command).await
    }

    async fn delegate_grant(&self, command: DelegateGrant) -> Result<Grant, Refusal> {
        self.engine.write(command).await
    }

    async fn lineage(&self, tenant: &TenantId, id: GrantId) -> Result<Option<Lineage>, Refusal> {
        self.engine.read(ReadLineage { tenant: tenant.clone(), id }).await
    }

    async fn grants(
        &self,
        tenant: &TenantId,
        filter: GrantFilter,
        page: PageRequest,
    ) -> Result<Page<Lineage>, Refusal> {
        self.engine.read(ListGrants { tenant: tenant.clone(), filter, page }).await
    }

    async fn descendants(&self, tenant: &TenantId, id: GrantId, limit: u32) -> Result<Vec<Grant>, Refusal> {
        self.engine.read(ReadDescendants { tenant: tenant.clone(), id, limit }).await
    }

    async fn revoke_grant(&self, command: RevokeGrant) -> Result<Revoked, Refusal> {
        let grants = self.engine.write(command).await?;
        Ok(Revoked { grants, revision: self.revision_after_change().await? })
    }

    async fn suspend_grant(&self, command: SuspendGrant) -> Result<Grant, Refusal> {
        self.engine.write(command).await
    }

    async fn resume_grant(&self, command: ResumeGrant) -> Result<Grant, Refusal> {
        self.engine.write(command).await
    }

    async fn announce_expired(&self, now: Timestamp) -> Result<u64, Refusal> {
        // A row that cannot be read is marked like the others, and so is reported once.
        self.in_batches(|_| AnnounceExpired { now }).await?.report()
    }
}

/// How many scopes a message names.
const NAMED: usize = 8;
/// Longer than the delegation chain of any organisation; bounds the cost of one use if the depth is unlimited.
const LEVEL_LIMIT: u32 = 256;

impl Administration for CreateGrant {
    /// With its whole context.
    type Output = Grant;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Grant, Failure> {
        let mut grant = self.grant.clone();
        principals::share_grantee(transaction, &grant.tenant, &grant.agent).await?;
        grant.authority.context = work::complete_context(transaction, &grant.tenant, &grant.authority.context).await?;
        let grant = grant;
        let credential = credentials::share(transaction, &grant.tenant, grant.credential).await?;
        credentials::require_active(&credential, by.time)?;
        let beyond = grant.authority.scopes.beyond(&credential.scopes_available);
        if !beyond.is_empty() {
            let names: Vec<String> = beyond.iter().take(NAMED).map(|scope| format!("`{scope}`")).collect();
            let reason = format!("credential {} does not have {}", credential.id, names.join(", "));
            return Err(Refusal::new(Code::ScopeUnavailable, reason)
                .with("unavailable_scopes", beyond)
                .with("available_scopes", &credential.scopes_available)
                .into());
        }
        insert(transaction, &grant).await?;
        let payload = EventPayload::GrantCreated(GrantCreated {
            grant_id: grant.id,
            credential_id: grant.credential,
            agent_id: grant.agent.clone(),
            scopes: grant.authority.scopes.clone(),
            expires_at: grant.authority.expires_at,
        });
        record(transaction, by, about(payload, &grant)).await?;
        Ok(grant)
    }
}

impl Administration for DelegateGrant {
    type Output = Grant;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Grant, Failure> {
        principals::share_grantee(transaction, &by.tenant, &self.target).await?;
        let delegation = Delegation {
            id: self.id,
            source: self.source,
            target: &self.target,
            granted_by: &self.granted_by,
            request: self.request.clone(),
        };
        delegate(transaction, by, delegation).await
    }
}

/// What is delegated, to whom.
pub struct Delegation<'a> {
    pub id: GrantId,
    pub source: GrantId,
    /// INVARIANT: the transaction shares this principal.
    pub target: &'a PrincipalId,
    pub granted_by: &'a PrincipalId,
    pub request: DelegationRequest,
}

/// Delegates a grant, if its whole lineage is active and the request is within it.
pub async fn delegate<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    delegation: Delegation<'_>,
) -> Result<Grant, Failure> {
    let (tenant, mut request) = (&by.tenant, delegation.request);
    // The terms of grants never change, so the context can be read before the locks are taken in their order.
    let source = grant_rows::lineage(transaction, tenant, delegation.source).await?;
    let source = source.ok_or_else(|| grant_rows::not_found(delegation.source))?;
    let bound = request.context.within(&source.effective().context);
    let whole = work::complete_context(transaction, tenant, &bound).await?;
    let (lineage, credential) = share_lineage(transaction, tenant, delegation.source).await?;
    require_usable(&lineage, by.time)?;
    credentials::require_active(&credential, by.time)?;
    let source = lineage.grant();
    if source.level >= LEVEL_LIMIT {
        let reason = format!("a lineage has at most {LEVEL_LIMIT} delegations");
        return Err(Refusal::new(Code::DelegationDepthExceeded, reason).into());
    }
    request.context = request.context.within(&whole);
    let authority = lineage.effective().delegate(request).map_err(|error| refuse_delegation(&error, source.id))?;
    work::governing::require_delegable(transaction, &lineage).await?;
    let grant = Grant {
        id: delegation.id,
        tenant: tenant.clone(),
        credential: source.credential,
        service: source.service.clone(),
        agent: delegation.target.clone(),
        granted_by: delegation.granted_by.clone(),
        source: Some(source.id),
        level: source.level + 1,
        authority,
        created_at: by.time,
        suspended: None,
        revoked_at: None,
    };
    insert(transaction, &grant).await?;
    let payload = EventPayload::GrantDelegated(GrantDelegated {
        grant_id: grant.id,
        source_grant_id: source.id,
        target_agent_id: grant.agent.clone(),
        scopes: grant.authority.scopes.clone(),
        delegation_depth: grant.authority.delegation_depth.to_option(),
    });
    record(transaction, by, about(payload, &grant)).await?;
    Ok(grant)
}

impl Administration for RevokeGrant {
    /// The number of grants.
    type Output = u64;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<u64, Failure> {
        take_grant(transaction, &by.tenant, self.id).await?;
        revoke_below(transaction, by, Cascade::Grant(self.id), &self.reason).await
    }
}

impl Administration for SuspendGrant {
    type Output = Grant;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Grant, Failure> {
        let lineage = take_grant(transaction, &by.tenant, self.id).await?;
        let mut grant = lineage.grant().clone();
        match grant.status(by.time) {
            GrantStatus::Active => {}
            // Only the principal that suspended it can resume it: a manager's suspension must not end with a
            // delegator's.
            GrantStatus::Suspended if self.overrides && is_paused_by_another(by, &grant) => {}
            ended => {
                return Err(Refusal::of_standing(Standing { status: ended, decided_by: grant.id }, grant.id).into());
            }
        }
        let sql = "UPDATE grants SET suspended_at = $1, suspended_by = $2 WHERE id = $3";
        transaction.execute(sql, values![by.time, &by.actor, self.id]).await?;
        grant.suspended = Some(Suspension { at: by.time, by: by.actor.clone() });
        let payload = EventPayload::GrantSuspended(GrantSuspended { grant_id: grant.id, reason: self.reason.clone() });
        record(transaction, by, about(payload, &grant)).await?;
        Ok(grant)
    }
}

impl Administration for ResumeGrant {
    type Output = Grant;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Grant, Failure> {
        let lineage = take_grant(transaction, &by.tenant, self.id).await?;
        let mut grant = lineage.grant().clone();
        match grant.status(by.time) {
            GrantStatus::Suspended => require_own_pause(self, by, &grant)?,
            GrantStatus::Active => {
                let reason = format!("grant {} is not suspended", grant.id);
                return Err(Refusal::new(Code::GrantNotSuspended, reason).with("grant_id", grant.id).into());
            }
            ended => {
                return Err(Refusal::of_standing(Standing { status: ended, decided_by: grant.id }, grant.id).into());
            }
        }
        let sql = "UPDATE grants SET suspended_at = NULL, suspended_by = NULL WHERE id = $1";
        transaction.execute(sql, values![self.id]).await?;
        grant.suspended = None;
        record(transaction, by, about(EventPayload::GrantResumed(GrantResumed { grant_id: grant.id }), &grant)).await?;
        Ok(grant)
    }
}

fn require_usable(lineage: &Lineage, now: Timestamp) -> Result<(), Refusal> {
    match lineage.standing(now) {
        Standing { status: GrantStatus::Active, .. } => Ok(()),
        standing => Err(Refusal::of_standing(standing, lineage.grant().id)),
    }
}

fn is_paused_by_another(by: &Entitled<'_>, grant: &Grant) -> bool {
    grant.suspended.as_ref().is_some_and(|suspension| suspension.by != by.actor)
}

fn require_own_pause(command: &ResumeGrant, by: &Entitled<'_>, grant: &Grant) -> Result<(), Refusal> {
    if !command.only_own || !is_paused_by_another(by, grant) {
        return Ok(());
    }
    let reason = "the grant was suspended by another principal; only managers of the credential may resume it";
    Err(Refusal::new(Code::PermissionDenied, reason).with("grant_id", grant.id))
}

fn refuse_delegation(error: &DelegationError, source: GrantId) -> Refusal {
    let code = match error {
        DelegationError::Scopes { .. } => Code::GrantScopeInsufficient,
        DelegationError::NoScopes => Code::InvalidField,
        DelegationError::Constraint(_) => Code::GrantConstraintExceeded,
        DelegationError::NotDelegatable => Code::GrantNotDelegatable,
        DelegationError::DepthUsedUp | DelegationError::Depth => Code::DelegationDepthExceeded,
        DelegationError::Context { .. } => Code::GrantContextMismatch,
        DelegationError::Expiry { .. } => Code::GrantExpiryExceeded,
    };
    let refusal = Refusal::new(code, error.to_string()).with("grant_id", source);
    match error {
        DelegationError::Scopes { beyond, available } => {
            refusal.with("requested_scope", beyond.first()).with("available_scopes", available)
        }
        DelegationError::Constraint(widening) => refusal.with("path", &widening.path),
        _ => refusal,
    }
}

fn about(payload: EventPayload, grant: &Grant) -> Entry {
    Entry { context: grant.authority.context.clone(), ..Entry::about(payload, &grant.agent) }
}
