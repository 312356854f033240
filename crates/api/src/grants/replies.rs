//! Grants as they are shown.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_model::constraint::Constraints;
use toolgate_model::context::GrantContext;
use toolgate_model::credential::ServiceName;
use toolgate_model::grant::{DelegationDepth, GrantStatus, Lineage};
use toolgate_model::id::{CredentialId, GrantId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::scope::ScopeSet;
use toolgate_model::time::Timestamp;

use super::GrantSource;
use crate::reply::{NextCursor, Revision};

/// A grant as it was stated.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatedGrant {
    pub id: GrantId,
    pub credential_id: CredentialId,
    pub service: ServiceName,
    pub agent_id: PrincipalId,
    pub granted_by: PrincipalId,
    pub scopes: ScopeSet,
    #[schemars(with = "Constraints")]
    pub constraints: Value,
    pub source: GrantSource,
    /// The grant that it was delegated from.
    pub source_grant_id: Option<GrantId>,
    /// The same as `source_grant_id`.
    pub delegated_from: Option<GrantId>,
    pub delegatable: bool,
    #[schemars(with = "DelegationDepth")]
    pub delegation_depth: Option<u32>,
    pub context: GrantContext,
    /// The status of the grant itself.
    pub status: GrantStatus,
    pub expires_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub suspended_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl StatedGrant {
    pub fn new(grant: &toolgate_model::grant::Grant, now: Timestamp) -> Self {
        let authority = &grant.authority;
        Self {
            id: grant.id,
            credential_id: grant.credential,
            service: grant.service.clone(),
            agent_id: grant.agent.clone(),
            granted_by: grant.granted_by.clone(),
            scopes: authority.scopes.clone(),
            constraints: authority.constraints.to_json(),
            source: if grant.source.is_some() { GrantSource::Delegated } else { GrantSource::Direct },
            source_grant_id: grant.source,
            delegated_from: grant.source,
            delegatable: authority.delegatable,
            delegation_depth: authority.delegation_depth.to_option(),
            context: authority.context.clone(),
            status: grant.status(now),
            expires_at: authority.expires_at,
            created_at: grant.created_at,
            suspended_at: grant.suspended.as_ref().map(|suspension| suspension.at),
            revoked_at: grant.revoked_at,
        }
    }
}

/// A grant and its effective authority.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    #[serde(flatten)]
    pub stated: StatedGrant,
    /// The status that follows from its lineage.
    pub effective_status: GrantStatus,
    /// The grant that decides the effective status, where that is not active.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "GrantId")]
    pub effective_status_decided_by: Option<GrantId>,
    pub effective: EffectiveAuthority,
    /// The grants it was delegated from, the direct one first.
    pub lineage: Vec<Ancestor>,
}

impl Grant {
    pub fn new(lineage: &Lineage, now: Timestamp) -> Self {
        let standing = lineage.standing(now);
        let effective = lineage.effective();
        let ancestors = lineage.ancestors().iter().map(|grant| Ancestor {
            grant_id: grant.id,
            agent_id: grant.agent.clone(),
            granted_by: grant.granted_by.clone(),
            status: grant.status(now),
        });
        Self {
            stated: StatedGrant::new(lineage.grant(), now),
            effective_status: standing.status,
            effective_status_decided_by: (standing.status != GrantStatus::Active).then_some(standing.decided_by),
            effective: EffectiveAuthority {
                constraints: effective.constraints.to_json(),
                delegation_depth: effective.delegation_depth.to_option(),
                scopes: effective.scopes,
                context: effective.context,
                delegatable: effective.delegatable,
                expires_at: effective.expires_at,
            },
            lineage: ancestors.collect(),
        }
    }
}

/// The effective authority: the meet along the lineage.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct EffectiveAuthority {
    pub scopes: ScopeSet,
    #[schemars(with = "Constraints")]
    pub constraints: Value,
    pub context: GrantContext,
    pub delegatable: bool,
    #[schemars(with = "DelegationDepth")]
    pub delegation_depth: Option<u32>,
    pub expires_at: Option<Timestamp>,
}

/// A grant further up the lineage.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ancestor {
    pub grant_id: GrantId,
    pub agent_id: PrincipalId,
    pub granted_by: PrincipalId,
    pub status: GrantStatus,
}

/// A grant, and the revision at which it was read.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReadGrant {
    #[serde(flatten)]
    pub grant: Grant,
    pub revision: Revision,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct GrantPage {
    pub grants: Vec<Grant>,
    pub next_cursor: NextCursor,
}

/// What was revoked with a grant.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RevokedGrant {
    pub status: GrantStatus,
    pub grant_id: GrantId,
    /// The grant and its descendants.
    pub revoked_count: u64,
    /// Its descendants.
    pub cascade_count: u64,
    pub revoked_at: Option<Timestamp>,
    pub revision: Revision,
}

/// A grant with its descendants.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct GrantTree {
    pub tree: RootBranch,
    /// The number of descendants.
    pub count: usize,
    /// Whether there are more descendants than are shown.
    pub truncated: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct RootBranch {
    #[serde(flatten)]
    pub grant: Grant,
    pub delegations: Vec<GrantBranch>,
}

/// A delegated grant with its descendants.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct GrantBranch {
    #[serde(flatten)]
    pub grant: StatedGrant,
    pub delegations: Vec<GrantBranch>,
}

impl GrantTree {
    /// The tree of `root`, with the grants `below` it in the order of their levels.
    pub fn new(root: &Lineage, below: &[toolgate_model::grant::Grant], truncated: bool, now: Timestamp) -> Self {
        // From the deepest level up, each grant is put below its source.
        let mut branches: BTreeMap<GrantId, Vec<GrantBranch>> = BTreeMap::new();
        let take = |branches: &mut BTreeMap<GrantId, Vec<GrantBranch>>, id: GrantId| {
            let mut own = branches.remove(&id).unwrap_or_default();
            own.reverse();
            own
        };
        for grant in below.iter().rev() {
            let branch =
                GrantBranch { grant: StatedGrant::new(grant, now), delegations: take(&mut branches, grant.id) };
            if let Some(source) = grant.source {
                branches.entry(source).or_default().push(branch);
            }
        }
        let delegations = take(&mut branches, root.grant().id);
        Self { tree: RootBranch { grant: Grant::new(root, now), delegations }, count: below.len(), truncated }
    }
}
