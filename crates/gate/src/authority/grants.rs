//! Grants: giving, delegating, pausing, taking back.

use toolgate_model::constraint::{ConstraintError, Constraints};
use toolgate_model::context::GrantContext;
use toolgate_model::grant::{Authority, DelegationDepth, DelegationRequest, Grant, Lineage};
use toolgate_model::id::{CredentialId, GrantId};
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;
use toolgate_model::scope::ScopeSet;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use super::access::Relation;
use crate::authority::Administration;
use crate::identify::Caller;
use crate::ports::ledger::{
    CreateGrant, DelegateGrant, GrantFilter, Page, PageRequest, ResumeGrant, Revision, RevokeGrant, Revoked,
    SuspendGrant,
};
use crate::refusal::{Code, Refusal};

/// The most grants that one answer shows below another.
pub const TREE_LIMIT: u32 = 10_000;

/// A direct grant to be made. What is `None` takes the protocol's default.
pub struct NewGrant {
    /// On which credential.
    pub credential: CredentialId,
    /// For whom.
    pub agent: PrincipalId,
    /// By whom; the caller unless said otherwise.
    pub granted_by: Option<PrincipalId>,
    /// What.
    pub scopes: ScopeSet,
    /// Within which limits.
    pub constraints: Constraints,
    /// Bound to what.
    pub context: GrantContext,
    /// Whether it may be delegated.
    pub delegatable: bool,
    /// How far; `None` is once where it is delegatable at all.
    pub delegation_depth: Option<DelegationDepth>,
    /// Until when; `None` is the default lifetime, `Some(None)` no end.
    pub expires_at: Option<Option<Timestamp>>,
    /// Needed for a grant without end.
    pub allow_indefinite: bool,
}

/// A delegation to be made.
pub struct NewDelegation {
    /// Of which grant.
    pub source: GrantId,
    /// To whom.
    pub target: PrincipalId,
    /// What.
    pub request: DelegationRequest,
    /// Needed for a grant without end.
    pub allow_indefinite: bool,
}

/// A grant with what is below it.
pub struct GrantTree {
    /// The grant.
    pub root: Lineage,
    /// Everything delegated from it, nearest levels first.
    pub below: Vec<Grant>,
    /// Whether there is more than is shown.
    pub truncated: bool,
}

impl Administration {
    /// Makes a direct grant.
    pub async fn create_grant(&self, caller: &Caller, new: NewGrant) -> Result<Lineage, Refusal> {
        caller.require(Permission::ManageTools)?;
        let granted_by = new.granted_by.unwrap_or_else(|| caller.id().clone());
        caller.require_acting_for(&granted_by)?;
        let credential = self.managed_credential(caller, new.credential).await?;
        let audit = caller.mandate(self.clock.now());
        let expires_at = match new.expires_at {
            None => Some(audit.time().plus(self.settings.default_grant_lifetime)),
            Some(end) => end,
        };
        self.require_future(expires_at)?;
        require_indefinite(expires_at, new.allow_indefinite)?;
        let depth = new.delegation_depth.unwrap_or(DelegationDepth::Limited(u32::from(new.delegatable)));
        let grant = Grant {
            id: self.ids.make(audit.time(), GrantId::new)?,
            tenant: audit.tenant().clone(),
            credential: credential.id,
            service: credential.service,
            agent: new.agent,
            granted_by,
            source: None,
            level: 0,
            authority: Authority {
                scopes: new.scopes,
                constraints: new.constraints,
                context: new.context,
                delegatable: new.delegatable,
                delegation_depth: depth,
                expires_at,
            },
            created_at: audit.time(),
            suspended: None,
            revoked_at: None,
        };
        self.grants.create_grant(CreateGrant { audit, grant: grant.clone() }).await?;
        Lineage::new(Vec::new(), grant).ok_or_else(|| Refusal::new(Code::Internal, "a direct grant has no source"))
    }

    /// Delegates a grant that the caller holds, or whose holder it may act for.
    pub async fn delegate_grant(&self, caller: &Caller, new: NewDelegation) -> Result<Lineage, Refusal> {
        let (source, _) = self.visible_grant(caller, new.source).await?;
        caller.require(Permission::DelegateTools)?;
        let holder = source.grant().agent.clone();
        caller.require_acting_for(&holder)?;
        self.require_future(new.request.expires_at.flatten())?;
        if new.request.expires_at == Some(None) {
            require_indefinite(None, new.allow_indefinite)?;
        }
        let audit = caller.mandate(self.clock.now());
        let command = DelegateGrant {
            id: self.ids.make(audit.time(), GrantId::new)?,
            audit,
            source: new.source,
            target: new.target,
            granted_by: holder,
            request: new.request,
        };
        let grant = self.grants.delegate_grant(command).await?;
        let mut ancestors = source.ancestors().to_vec();
        ancestors.push(source.grant().clone());
        Lineage::new(ancestors, grant)
            .ok_or_else(|| Refusal::new(Code::Internal, "the lineage changed while delegating"))
    }

    /// One grant with its lineage, and the revision of the ledger that the answer includes.
    pub async fn grant(&self, caller: &Caller, id: GrantId) -> Result<(Lineage, Revision), Refusal> {
        let revision = self.state.revision().await?;
        let (lineage, _) = self.visible_grant(caller, id).await?;
        Ok((lineage, revision))
    }

    /// A grant with everything below it.
    pub async fn grant_tree(&self, caller: &Caller, id: GrantId) -> Result<GrantTree, Refusal> {
        let (root, _) = self.visible_grant(caller, id).await?;
        let mut below = self.grants.descendants(caller.tenant(), id, TREE_LIMIT + 1).await?;
        let limit = usize::try_from(TREE_LIMIT).unwrap_or(usize::MAX);
        let truncated = below.len() > limit;
        below.truncate(limit);
        Ok(GrantTree { root, below, truncated })
    }

    /// The grants that fit the filter and that the caller can see.
    pub async fn grants(
        &self,
        caller: &Caller,
        mut filter: GrantFilter,
        page: PageRequest,
    ) -> Result<Page<Lineage>, Refusal> {
        if !caller.manages_all() && filter.agent.as_ref() != Some(caller.id()) {
            match &filter.agent {
                // Whoever keeps no vaults has nothing but what it holds.
                None if !caller.may(Permission::ManageTools) => filter.agent = Some(caller.id().clone()),
                // Not the caller's own: only what is in the caller's vaults can be listed.
                _ => {
                    caller.require(Permission::ManageTools)?;
                    filter.vault_owner = Some(caller.id().clone());
                }
            }
        }
        self.grants.grants(caller.tenant(), filter, page).await
    }

    /// Takes a grant back with everything below it. Its manager may, whoever it was delegated by, and its holder.
    pub async fn revoke_grant(
        &self,
        caller: &Caller,
        id: GrantId,
        reason: Option<Line>,
    ) -> Result<(Revoked, Lineage), Refusal> {
        let (_, relation) = self.visible_grant(caller, id).await?;
        if relation == Relation::Delegator {
            caller.require(Permission::DelegateTools)?;
        }
        let reason = reason_or(reason, "revoked", caller);
        let revoked =
            self.grants.revoke_grant(RevokeGrant { audit: caller.mandate(self.clock.now()), id, reason }).await?;
        let (lineage, _) = self.visible_grant(caller, id).await?;
        Ok((revoked, lineage))
    }

    /// Pauses a grant. Its manager may, also one that a delegator has paused, and whoever it was delegated by.
    pub async fn suspend_grant(&self, caller: &Caller, id: GrantId, reason: Option<Line>) -> Result<Lineage, Refusal> {
        let (_, relation) = self.visible_grant(caller, id).await?;
        require_over(caller, relation)?;
        let reason = reason_or(reason, "suspended", caller);
        let overrides = relation == Relation::Manager;
        self.grants
            .suspend_grant(SuspendGrant { audit: caller.mandate(self.clock.now()), id, reason, overrides })
            .await?;
        Ok(self.visible_grant(caller, id).await?.0)
    }

    /// Ends the pause of a grant. Its manager may, and whoever it was delegated by, if they paused it themselves.
    pub async fn resume_grant(&self, caller: &Caller, id: GrantId) -> Result<Lineage, Refusal> {
        let (_, relation) = self.visible_grant(caller, id).await?;
        require_over(caller, relation)?;
        let only_own = relation == Relation::Delegator;
        self.grants.resume_grant(ResumeGrant { audit: caller.mandate(self.clock.now()), id, only_own }).await?;
        Ok(self.visible_grant(caller, id).await?.0)
    }

    /// Now, as the gate sees it: statuses are judged at this moment.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl From<ConstraintError> for Refusal {
    fn from(error: ConstraintError) -> Self {
        Self::new(Code::InvalidField, error.to_string()).with("path", &error.path)
    }
}

fn require_indefinite(expires_at: Option<Timestamp>, allowed: bool) -> Result<(), Refusal> {
    if expires_at.is_some() || allowed {
        return Ok(());
    }
    let reason = "a grant without end needs `allow_indefinite: true` beside `expires_at: null`; better give it an end";
    Err(Refusal::new(Code::InvalidField, reason).with("path", "expires_at"))
}

fn require_over(caller: &Caller, relation: Relation) -> Result<(), Refusal> {
    match relation {
        Relation::Manager => Ok(()),
        Relation::Delegator => caller.require(Permission::DelegateTools),
        // Not even with `tools.manage`: whoever had that over this credential would be its manager.
        Relation::Holder => Err(not_the_manager("nobody suspends or resumes a grant of its own")),
    }
}

fn not_the_manager(why: &str) -> Refusal {
    let reason = format!("only who manages the grant's credential may do this: {why}");
    Refusal::new(Code::PermissionDenied, reason).with("required_permission", Permission::ManageTools)
}

fn reason_or(reason: Option<Line>, done: &str, caller: &Caller) -> String {
    reason.map_or_else(|| format!("{done} by `{}`", caller.id()), |line| line.as_str().to_owned())
}
