//! Grants: the authority of one agent over some scopes of one credential, and how it narrows by delegation.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::constraint::{Constraints, Widening};
use crate::context::GrantContext;
use crate::id::{CredentialId, GrantId};
use crate::principal::{PrincipalId, TenantId};
use crate::scope::{Scope, ScopeSet};
use crate::time::Timestamp;

/// How many levels further a grant may be delegated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelegationDepth {
    /// Zero means not at all.
    Limited(u32),
    Unlimited,
}

impl DelegationDepth {
    /// The depth of a grant delegated from one of this depth; `None` if none is left.
    pub fn below(self) -> Option<Self> {
        match self {
            Self::Limited(0) => None,
            Self::Limited(depth) => Some(Self::Limited(depth - 1)),
            Self::Unlimited => Some(Self::Unlimited),
        }
    }

    /// Whether this is no deeper than `other`.
    pub fn is_within(self, other: Self) -> bool {
        match (self, other) {
            (_, Self::Unlimited) => true,
            (Self::Unlimited, Self::Limited(_)) => false,
            (Self::Limited(own), Self::Limited(limit)) => own <= limit,
        }
    }

    /// The JSON and stored form: a number, or `null` for unlimited.
    pub fn to_option(self) -> Option<u32> {
        match self {
            Self::Limited(depth) => Some(depth),
            Self::Unlimited => None,
        }
    }

    /// Inverse of [`DelegationDepth::to_option`].
    pub fn from_option(depth: Option<u32>) -> Self {
        depth.map_or(Self::Unlimited, Self::Limited)
    }
}

/// What a grant lets its agent do: as stated, or, as the meet along the lineage, in effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Authority {
    /// Scopes of the credential.
    pub scopes: ScopeSet,
    pub constraints: Constraints,
    pub context: GrantContext,
    /// Whether it may be delegated at all.
    pub delegatable: bool,
    pub delegation_depth: DelegationDepth,
    /// `None` is indefinite.
    pub expires_at: Option<Timestamp>,
}

/// A requested delegation. Absent parts are inherited from the source.
#[derive(Debug, Clone, PartialEq)]
pub struct DelegationRequest {
    /// The scopes to pass on.
    pub scopes: ScopeSet,
    /// Additional limits.
    pub constraints: Constraints,
    /// A narrower context.
    pub context: GrantContext,
    /// Whether the receiver may delegate in turn; by default as far as the depth allows.
    pub delegatable: Option<bool>,
    /// A smaller depth than the source leaves.
    pub delegation_depth: Option<DelegationDepth>,
    /// The end; by default that of the source, `Some(None)` requests none.
    pub expires_at: Option<Option<Timestamp>>,
}

/// Why a delegation would exceed its source (RFC-0014 §5.1).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DelegationError {
    /// Rule 1.
    #[error("the source grant does not hold {}", list(beyond))]
    Scopes {
        /// The requested scopes that the source does not have.
        beyond: Vec<Scope>,
        /// The scopes that could be delegated.
        available: Vec<Scope>,
    },
    #[error("`scopes` is empty; delegate at least one scope")]
    NoScopes,
    /// Rule 2.
    #[error("{0}")]
    Constraint(Widening),
    /// Rule 3.
    #[error("the source grant is not delegatable")]
    NotDelegatable,
    /// Rule 4, nothing left.
    #[error("the delegation depth of the source grant is exhausted")]
    DepthUsedUp,
    /// Rule 4, more than is left.
    #[error("`delegation_depth` exceeds the remaining depth of the source grant")]
    Depth,
    /// Rule 5.
    #[error("`context.{part}` differs from the context of the source grant")]
    Context { part: &'static str },
    /// Rule 6.
    #[error("`expires_at` is after the expiry of the source grant, {source_expiry}")]
    Expiry { source_expiry: Timestamp },
}

impl Authority {
    /// The authority that a delegation of this one states, or why it is not allowed. `self` is the effective authority
    /// of the source, so that one check covers the whole lineage.
    pub fn delegate(&self, request: DelegationRequest) -> Result<Self, DelegationError> {
        if request.scopes.is_empty() {
            return Err(DelegationError::NoScopes);
        }
        let beyond = request.scopes.beyond(&self.scopes);
        if !beyond.is_empty() {
            return Err(DelegationError::Scopes { beyond, available: self.scopes.iter().cloned().collect() });
        }
        if let Some(widening) = request.constraints.first_widening(&self.constraints) {
            return Err(DelegationError::Constraint(widening));
        }
        if !self.delegatable {
            return Err(DelegationError::NotDelegatable);
        }
        let left = self.delegation_depth.below().ok_or(DelegationError::DepthUsedUp)?;
        let depth = request.delegation_depth.unwrap_or(left);
        if !depth.is_within(left) {
            return Err(DelegationError::Depth);
        }
        if let Some(part) = request.context.first_widening(&self.context) {
            return Err(DelegationError::Context { part });
        }
        let expires_at = match (request.expires_at, self.expires_at) {
            (None, source) => source,
            (Some(Some(own)), Some(source)) if own > source => {
                return Err(DelegationError::Expiry { source_expiry: source });
            }
            (Some(None), Some(source)) => return Err(DelegationError::Expiry { source_expiry: source }),
            (Some(own), _) => own,
        };
        Ok(Self {
            scopes: request.scopes,
            constraints: request.constraints,
            context: request.context.within(&self.context),
            delegatable: request.delegatable.unwrap_or(depth != DelegationDepth::Limited(0)),
            delegation_depth: depth,
            expires_at,
        })
    }

    /// The meet of this authority and `source`. Applied along the lineage at every use, whatever was checked when the
    /// grant was created.
    pub fn within(&self, source: &Self) -> Self {
        let left = source.delegation_depth.below().filter(|_| source.delegatable);
        let depth = left.map_or(DelegationDepth::Limited(0), |left| {
            if self.delegation_depth.is_within(left) { self.delegation_depth } else { left }
        });
        Self {
            scopes: self.scopes.intersection(&source.scopes),
            constraints: self.constraints.meet(&source.constraints),
            context: self.context.within(&source.context),
            delegatable: self.delegatable,
            delegation_depth: depth,
            expires_at: match (self.expires_at, source.expires_at) {
                (Some(own), Some(source)) => Some(own.min(source)),
                (own, source) => own.or(source),
            },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantStatus {
    /// Usable, as far as the grant itself is concerned.
    Active,
    /// Terminal.
    Expired,
    /// Terminal.
    Revoked,
    /// Until resumed.
    Suspended,
}

impl GrantStatus {
    pub const ALL: [Self; 4] = [Self::Active, Self::Expired, Self::Revoked, Self::Suspended];

    /// The form that is shown and filtered by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::Suspended => "suspended",
        }
    }
}

/// A grant. Its terms never change after it was created; only its state does.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    pub id: GrantId,
    pub tenant: TenantId,
    pub credential: CredentialId,
    /// The service of the credential, for lookups.
    pub service: crate::credential::ServiceName,
    /// The agent that may use it.
    pub agent: PrincipalId,
    pub granted_by: PrincipalId,
    /// The grant that it was delegated from; `None` for a direct grant.
    pub source: Option<GrantId>,
    /// The number of its ancestors.
    pub level: u32,
    /// As stated.
    pub authority: Authority,
    pub created_at: Timestamp,
    pub suspended: Option<Suspension>,
    pub revoked_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    pub at: Timestamp,
    pub by: PrincipalId,
}

impl Grant {
    /// The state of the grant itself, without its lineage.
    pub fn status(&self, now: Timestamp) -> GrantStatus {
        if self.revoked_at.is_some() {
            GrantStatus::Revoked
        } else if self.authority.expires_at.is_some_and(|end| end <= now) {
            GrantStatus::Expired
        } else if self.suspended.is_some() {
            GrantStatus::Suspended
        } else {
            GrantStatus::Active
        }
    }
}

/// A grant with all its ancestors, the direct grant first and the grant itself last.
#[derive(Debug, Clone, PartialEq)]
pub struct Lineage {
    ancestors: Vec<Grant>,
    grant: Grant,
}

/// The status of a lineage at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The effective status: a grant below a suspended one is suspended.
    pub status: GrantStatus,
    /// The grant that determines it: itself, or the highest ancestor that prevents its use.
    pub decided_by: GrantId,
}

impl Lineage {
    /// `None` unless each grant was delegated from the one before, and the first from none.
    pub fn new(ancestors: Vec<Grant>, grant: Grant) -> Option<Self> {
        let mut above: Option<GrantId> = None;
        for own in ancestors.iter().chain([&grant]) {
            if own.source != above || own.tenant != grant.tenant || own.credential != grant.credential {
                return None;
            }
            above = Some(own.id);
        }
        Some(Self { ancestors, grant })
    }

    /// The grant itself.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The ancestors, the direct grant first.
    pub fn ancestors(&self) -> &[Grant] {
        &self.ancestors
    }

    /// The effective authority: the meet along the lineage.
    pub fn effective(&self) -> Authority {
        let mut grants = self.ancestors.iter().chain([&self.grant]);
        let first = grants.next().map_or_else(|| self.grant.authority.clone(), |root| root.authority.clone());
        grants.fold(first, |above, grant| grant.authority.within(&above))
    }

    /// The effective state.
    pub fn standing(&self, now: Timestamp) -> Standing {
        let own = self.grant.status(now);
        if matches!(own, GrantStatus::Revoked | GrantStatus::Expired) {
            return Standing { status: own, decided_by: self.grant.id };
        }
        // Revocation takes precedence over expiry, and expiry over suspension, whichever grant has it.
        let above = |wanted: GrantStatus| self.ancestors.iter().find(|grant| grant.status(now) == wanted);
        [GrantStatus::Revoked, GrantStatus::Expired, GrantStatus::Suspended]
            .into_iter()
            .find_map(|status| above(status).map(|grant| Standing { status, decided_by: grant.id }))
            .unwrap_or(Standing { status: own, decided_by: self.grant.id })
    }
}

fn list(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| format!("`{scope}`")).collect::<Vec<_>>().join(", ")
}
