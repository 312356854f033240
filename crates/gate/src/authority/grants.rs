//! Grants: creation, delegation, suspension, revocation.

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

/// The maximum number of descendants in one response.
pub const TREE_LIMIT: u32 = 10_000;

/// A direct grant to create. `None` selects the protocol's default.
pub struct NewGrant {
    pub credential: CredentialId,
    pub agent: PrincipalId,
    /// Defaults to the caller.
    pub granted_by: Option<PrincipalId>,
    pub scopes: ScopeSet,
    pub constraints: Constraints,
    /// The intent, plan or task that it is bound to.
    pub context: GrantContext,
    pub delegatable: bool,
    /// How often it may be delegated further; `None` is once if it is delegatable at all.
    pub delegation_depth: Option<DelegationDepth>,
    /// `None` is the default lifetime, `Some(None)` no expiry.
    pub expires_at: Option<Option<Timestamp>>,
    /// Required for a grant without expiry.
    pub allow_indefinite: bool,
}

/// A delegation to create.
pub struct NewDelegation {
    pub source: GrantId,
    pub target: PrincipalId,
    pub request: DelegationRequest,
    /// Required for a grant without expiry.
    pub allow_indefinite: bool,
}

/// A grant with its descendants.
pub struct GrantTree {
    pub root: Lineage,
    /// All descendants, nearest levels first.
    pub below: Vec<Grant>,
    /// Whether there are more descendants than `below` contains.
    pub truncated: bool,
}

impl Administration {
    /// Creates a direct grant.
    pub async fn create_grant(&self, caller: &Caller, new: NewGrant) -> Result<Lineage, Refusal> {
        let command = self.grant_creation(caller, new).await?;
        let grant = self.grants.create_grant(command).await?;
        Lineage::new(Vec::new(), grant).ok_or_else(|| Refusal::new(Code::Internal, "a direct grant has no source"))
    }

    /// The command that creates a direct grant, if the caller may.
    pub(super) async fn grant_creation(&self, caller: &Caller, new: NewGrant) -> Result<CreateGrant, Refusal> {
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
        Ok(CreateGrant { audit, grant })
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

    /// Returns a grant with its lineage, and the ledger revision that the result includes.
    pub async fn grant(&self, caller: &Caller, id: GrantId) -> Result<(Lineage, Revision), Refusal> {
        let revision = self.state.revision().await?;
        let (lineage, _) = self.visible_grant(caller, id).await?;
        Ok((lineage, revision))
    }

    pub async fn grant_tree(&self, caller: &Caller, id: GrantId) -> Result<GrantTree, Refusal> {
        let (root, _) = self.visible_grant(caller, id).await?;
        let mut below = self.grants.descendants(caller.tenant(), id, TREE_LIMIT + 1).await?;
        let limit = usize::try_from(TREE_LIMIT).unwrap_or(usize::MAX);
        let truncated = below.len() > limit;
        below.truncate(limit);
        Ok(GrantTree { root, below, truncated })
    }

    /// Lists the grants that match the filter and that the caller can see.
    pub async fn grants(
        &self,
        caller: &Caller,
        mut filter: GrantFilter,
        page: PageRequest,
    ) -> Result<Page<Lineage>, Refusal> {
        if !caller.manages_all() && filter.agent.as_ref() != Some(caller.id()) {
            match &filter.agent {
                // A caller without vaults sees only the grants that it holds.
                None if !caller.may(Permission::ManageTools) => filter.agent = Some(caller.id().clone()),
                // For another agent, only grants on the caller's vaults can be listed.
                _ => {
                    caller.require(Permission::ManageTools)?;
                    filter.vault_owner = Some(caller.id().clone());
                }
            }
        }
        self.grants.grants(caller.tenant(), filter, page).await
    }

    /// Revokes a grant and everything delegated from it. Allowed for its manager, its delegator and its holder.
    pub async fn revoke_grant(
        &self,
        caller: &Caller,
        id: GrantId,
        reason: Option<Line>,
    ) -> Result<(Revoked, Lineage), Refusal> {
        let command = self.grant_revocation(caller, id, reason).await?;
        let revoked = self.grants.revoke_grant(command).await?;
        let (lineage, _) = self.visible_grant(caller, id).await?;
        Ok((revoked, lineage))
    }

    /// The command that revokes a grant, if the caller may.
    pub(super) async fn grant_revocation(
        &self,
        caller: &Caller,
        id: GrantId,
        reason: Option<Line>,
    ) -> Result<RevokeGrant, Refusal> {
        let (_, relation) = self.visible_grant(caller, id).await?;
        if relation == Relation::Delegator {
            caller.require(Permission::DelegateTools)?;
        }
        let reason = reason_or(reason, "revoked", caller);
        Ok(RevokeGrant { audit: caller.mandate(self.clock.now()), id, reason })
    }

    /// Suspends a grant. Allowed for its manager, even if a delegator has suspended it already, and for its delegator.
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

    /// Resumes a suspended grant. Allowed for its manager, and for its delegator if the delegator suspended it.
    pub async fn resume_grant(&self, caller: &Caller, id: GrantId) -> Result<Lineage, Refusal> {
        let (_, relation) = self.visible_grant(caller, id).await?;
        require_over(caller, relation)?;
        let only_own = relation == Relation::Delegator;
        self.grants.resume_grant(ResumeGrant { audit: caller.mandate(self.clock.now()), id, only_own }).await?;
        Ok(self.visible_grant(caller, id).await?.0)
    }

    /// The current time of the gate, at which statuses are evaluated.
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
    let reason = "a grant that never expires needs `allow_indefinite: true` with `expires_at: null`; prefer an expiry \
        time";
    Err(Refusal::new(Code::InvalidField, reason).with("path", "expires_at"))
}

fn require_over(caller: &Caller, relation: Relation) -> Result<(), Refusal> {
    match relation {
        Relation::Manager => Ok(()),
        Relation::Delegator => caller.require(Permission::DelegateTools),
        // Not even with `tools.manage`: with that permission for this credential the caller would be its manager.
        Relation::Holder => Err(not_the_manager("an agent cannot suspend or resume its own grant")),
    }
}

fn not_the_manager(why: &str) -> Refusal {
    let reason = format!("only the manager of the grant's credential may do this: {why}");
    Refusal::new(Code::PermissionDenied, reason).with("required_permission", Permission::ManageTools)
}

fn reason_or(reason: Option<Line>, done: &str, caller: &Caller) -> String {
    reason.map_or_else(|| format!("{done} by `{}`", caller.id()), |line| line.as_str().to_owned())
}
