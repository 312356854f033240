//! Selects grants: the whole lineage active, the credential usable, the scope held, the context matching. If several
//! match, they are ordered by preference.

use std::collections::BTreeSet;

use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::credential::CredentialStatus;
use toolgate_model::grant::{GrantStatus, Standing};
use toolgate_model::id::GrantId;
use toolgate_model::time::Timestamp;

use super::eligible::Candidate;
use super::resolve::Resolved;
use super::{Call, Pipeline};
use crate::ports::ledger::HeldGrant;
use crate::refusal::{Code, Refusal};

#[cfg(test)]
mod tests;

/// A call with the grants that authorize it, in the order of preference: bound to the task before unbound, fewest scopes,
/// soonest expiry, oldest.
///
/// INVARIANT: never empty.
pub(super) struct Authorized {
    candidates: Vec<Candidate>,
}

impl Authorized {
    pub(super) fn preferred(&self) -> Option<GrantId> {
        self.candidates.first().and_then(Candidate::grant)
    }

    pub(super) fn into_candidates(self) -> Vec<Candidate> {
        self.candidates
    }
}

impl Pipeline {
    /// Keeps the grants that authorize the call.
    pub(super) fn authorize(&self, call: &Call, resolved: Resolved) -> Result<Authorized, Refusal> {
        let now = self.clock.now();
        let mut candidates = resolved.into_candidates();
        let mut refusals = Vec::new();
        let mut without_scope = Vec::new();
        candidates.retain(|candidate| match authorizes(call, candidate, now) {
            Ok(()) => true,
            Err(refusal) => {
                if refusal.code() == Code::GrantScopeInsufficient {
                    without_scope.push(candidate.clone());
                }
                refusals.push(refusal);
                false
            }
        });
        match first_of(&candidates, refusals) {
            Some(refusal) if refusal.code() == Code::GrantScopeInsufficient && without_scope.len() > 1 => {
                Err(no_grant_includes(&without_scope).unwrap_or(refusal))
            }
            Some(refusal) => Err(refusal),
            None => {
                candidates.sort_by_cached_key(preference);
                Ok(Authorized { candidates })
            }
        }
    }
}

/// The refusal for a scope that none of several grants has, with the scopes that they have together.
fn no_grant_includes(candidates: &[Candidate]) -> Option<Refusal> {
    let scope = &candidates.first()?.tool.definition.scope;
    let held_grants = candidates.iter().filter_map(Candidate::held_grant);
    let held: BTreeSet<_> = held_grants.flat_map(|held_grant| held_grant.effective.scopes.iter()).collect();
    let reason = format!("no grant of the agent includes scope '{scope}'");
    let refusal = Refusal::new(Code::GrantScopeInsufficient, reason).with("requested_scope", scope);
    Some(refusal.with("available_scopes", held))
}

/// Whether the agent may use the tool, and this grant allows it.
pub(super) fn authorizes(call: &Call, candidate: &Candidate, now: Timestamp) -> Result<(), Refusal> {
    if let Some(held_grant) = candidate.held_grant() {
        opens(call, candidate, held_grant, now)?;
    }
    // RFC 0064 §C: the agent's own scopes, besides those of the grant.
    candidate.tool.require_open_to(candidate.agent.as_deref()).map_err(|reason| forbidden(candidate, reason))
}

fn opens(call: &Call, candidate: &Candidate, held_grant: &HeldGrant, now: Timestamp) -> Result<(), Refusal> {
    require_usable(held_grant, now)?;
    let scope = &candidate.tool.definition.scope;
    if !held_grant.effective.scopes.contains(scope) {
        let reason = format!("grant {} does not include scope '{scope}'", held_grant.grant());
        return Err(Refusal::new(Code::GrantScopeInsufficient, reason)
            .with("grant_id", held_grant.grant())
            .with("requested_scope", scope)
            .with("available_scopes", &held_grant.effective.scopes));
    }
    require_context(&held_grant.effective.context, &call.context, held_grant.grant())
}

fn forbidden(candidate: &Candidate, reason: String) -> Refusal {
    Refusal::new(Code::Forbidden, reason)
        .with("scope", "tool")
        .with("toolName", candidate.tool.qualified_name())
        .with("requiredScopes", &candidate.tool.required_scopes)
}

/// Whether a grant can be used now.
pub(crate) fn require_usable(held_grant: &HeldGrant, now: Timestamp) -> Result<(), Refusal> {
    require_standing(held_grant, now)?;
    require_unexpired_credential(held_grant, now)
}

/// Whether a grant is valid. Grants on a revoked credential ended with it, and that is the reason to report.
pub(super) fn require_standing(held_grant: &HeldGrant, now: Timestamp) -> Result<(), Refusal> {
    if held_grant.credential.status(now) == CredentialStatus::Revoked {
        return Err(credential_refusal(Code::CredentialRevoked, "is revoked", held_grant.grant()));
    }
    match held_grant.lineage.standing(now) {
        Standing { status: GrantStatus::Active, .. } => Ok(()),
        standing => Err(Refusal::of_standing(standing, held_grant.grant())),
    }
}

fn require_unexpired_credential(held_grant: &HeldGrant, now: Timestamp) -> Result<(), Refusal> {
    match held_grant.credential.status(now) {
        CredentialStatus::Expired => {
            Err(credential_refusal(Code::CredentialExpired, "has expired", held_grant.grant()))
        }
        CredentialStatus::Active | CredentialStatus::Revoked => Ok(()),
    }
}

fn credential_refusal(code: Code, state: &str, grant: GrantId) -> Refusal {
    let reason = format!("the credential of grant {grant} {state}; ask its manager");
    Refusal::new(code, reason).with("grant_id", grant)
}

fn require_context(bound: &GrantContext, given: &GrantContext, grant: GrantId) -> Result<(), Refusal> {
    let parts: [(&str, &Option<ContextId>, &Option<ContextId>); 3] = [
        ("intent_id", &bound.intent_id, &given.intent_id),
        ("plan_id", &bound.plan_id, &given.plan_id),
        ("task_id", &bound.task_id, &given.task_id),
    ];
    for (part, bound, given) in parts {
        let Some(bound) = bound else { continue };
        if given.as_ref() != Some(bound) {
            let reason = format!("grant {grant} is bound to {part} '{bound}'; set `context.{part}` of the call");
            return Err(Refusal::new(Code::GrantContextMismatch, reason)
                .with("grant_id", grant)
                .with("path", format!("context.{part}")));
        }
    }
    Ok(())
}

/// Sort key: the smallest is used first.
fn preference(candidate: &Candidate) -> Option<(bool, usize, bool, Option<Timestamp>, GrantId)> {
    let held_grant = candidate.held_grant()?;
    let effective = &held_grant.effective;
    Some((
        effective.context.task_id.is_none(),
        effective.scopes.iter().count(),
        effective.expires_at.is_none(),
        effective.expires_at,
        held_grant.grant(),
    ))
}

/// The refusal to report if nothing passed: that of the first in order.
pub(super) fn first_of<T>(passed: &[T], refusals: Vec<Refusal>) -> Option<Refusal> {
    if !passed.is_empty() {
        return None;
    }
    let nothing = || Refusal::new(Code::GrantNotFound, "there is no grant for this call");
    Some(refusals.into_iter().min_by_key(|refusal| closeness(refusal.code())).unwrap_or_else(nothing))
}

/// How close a refused grant was to being usable: the reported refusal should help the caller.
fn closeness(code: Code) -> u8 {
    match code {
        Code::Forbidden | Code::GrantContextMismatch => 0,
        Code::GrantSuspended => 1,
        Code::CredentialExpired | Code::CredentialRevoked => 2,
        Code::GrantScopeInsufficient => 3,
        _ => 4,
    }
}
