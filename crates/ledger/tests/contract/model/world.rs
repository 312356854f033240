//! The model: the rules of grants, written as plainly as possible, without any of the code that they are checked
//! against (except the names of statuses and codes). Every query goes up the lineage.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_gate::refusal::Code;
use toolgate_model::grant::GrantStatus;

use super::action::Action;
use super::terms::{SCOPES, Terms};

#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was nothing to do it to.
    Nothing,
    Done,
    /// It was done, and so many grants ended.
    Ended(u64),
    Refused(Code),
}

struct Grant {
    source: Option<usize>,
    credential: usize,
    scopes: BTreeSet<&'static str>,
    terms: Terms,
    delegatable: bool,
    /// `None` is unlimited.
    depth: Option<u32>,
    end: Option<i64>,
    suspended: bool,
    revoked: bool,
}

struct Credential {
    end: Option<i64>,
    revoked: bool,
}

/// Credentials and grants, by number, at one moment.
pub struct World {
    now: i64,
    credentials: Vec<Credential>,
    grants: Vec<Grant>,
    transitions: BTreeMap<String, usize>,
}

impl World {
    pub fn new(now: i64) -> Self {
        Self { now, credentials: Vec::new(), grants: Vec::new(), transitions: BTreeMap::new() }
    }

    pub fn add_credential(&mut self, end: Option<i64>) {
        self.credentials.push(Credential { end, revoked: false });
    }

    /// The grant's own status.
    pub fn status(&self, grant: usize) -> GrantStatus {
        let grant = &self.grants[grant];
        if grant.revoked {
            GrantStatus::Revoked
        } else if grant.end.is_some_and(|end| end <= self.now) {
            GrantStatus::Expired
        } else if grant.suspended {
            GrantStatus::Suspended
        } else {
            GrantStatus::Active
        }
    }

    /// The effective status of a grant.
    pub fn standing(&self, grant: usize) -> GrantStatus {
        let own = self.status(grant);
        if own == GrantStatus::Revoked || own == GrantStatus::Expired {
            return own;
        }
        let all: Vec<_> = self.lineage(grant).map(|above| self.status(above)).collect();
        [GrantStatus::Revoked, GrantStatus::Expired, GrantStatus::Suspended]
            .into_iter()
            .find(|status| all.contains(status))
            .unwrap_or(GrantStatus::Active)
    }

    /// Whether a call with these parameters satisfies every rule of the lineage.
    pub fn permits(&self, grant: usize, parameters: &BTreeMap<&'static str, i64>) -> bool {
        self.lineage(grant).flat_map(|above| &self.grants[above].terms.rules).all(|(name, rule)| {
            parameters.get(name).is_none_or(|value| {
                rule.values.as_ref().is_none_or(|values| values.contains(value))
                    && rule.max.is_none_or(|max| *value <= max)
                    && !rule.denied.contains(value)
            })
        })
    }

    /// The smallest limit of the lineage.
    pub fn calls_per_hour(&self, grant: usize) -> Option<u64> {
        self.lineage(grant).filter_map(|above| self.grants[above].terms.calls_per_hour).min()
    }

    /// The number of descendants.
    pub fn count_below(&self, grant: usize) -> usize {
        self.subtree(grant).len() - 1
    }

    /// How often each transition happened.
    pub fn transitions(&self) -> BTreeMap<String, usize> {
        self.transitions.clone()
    }

    pub fn play(&mut self, action: &Action) -> Outcome {
        match action {
            Action::Grant { credential, terms, .. } => self.grant(*credential, terms),
            Action::Delegate { source, terms, .. } => self.on(*source, |world, source| world.delegate(source, terms)),
            Action::Suspend(grant) => self.on(*grant, Self::suspend),
            Action::Resume(grant) => self.on(*grant, Self::resume),
            Action::Revoke(grant) => self.on(*grant, |world, grant| world.revoke(world.subtree(grant))),
            Action::Rotate(credential) => self.rotate(*credential),
            Action::RevokeCredential(credential) => self.revoke_credential(*credential),
            Action::Wait(seconds) => self.wait(i64::try_from(*seconds).unwrap() * 1000),
        }
    }

    fn on(&mut self, number: usize, act: impl FnOnce(&mut Self, usize) -> Outcome) -> Outcome {
        match pick(self.grants.len(), number) {
            Some(grant) => act(self, grant),
            None => Outcome::Nothing,
        }
    }

    fn grant(&mut self, credential: usize, terms: &Terms) -> Outcome {
        if let Some(code) = self.credential_in_the_way(credential) {
            return Outcome::Refused(code);
        }
        let scopes = terms.scopes_below(&SCOPES[..3].iter().copied().collect());
        if scopes.contains(SCOPES[3]) {
            return Outcome::Refused(Code::ScopeUnavailable);
        }
        self.grants.push(Grant {
            source: None,
            credential,
            scopes,
            delegatable: terms.delegatable_directly(),
            depth: terms.depth_directly(),
            end: terms.end_directly(self.now),
            terms: terms.clone(),
            suspended: false,
            revoked: false,
        });
        self.happened("grant.created")
    }

    fn delegate(&mut self, source: usize, terms: &Terms) -> Outcome {
        let credential = self.grants[source].credential;
        let in_the_way = match self.standing(source) {
            GrantStatus::Active => self.credential_in_the_way(credential),
            status => Some(ended(status)),
        };
        if let Some(code) = in_the_way.or_else(|| self.beyond(source, terms)) {
            return Outcome::Refused(code);
        }
        let depth = terms.depth.unwrap_or(self.grants[source].depth.map(|depth| depth - 1));
        let inherited = self.grants[source].end;
        let end = match terms.lifetime {
            None => inherited,
            Some(lifetime) => lifetime.map(|seconds| self.now + i64::try_from(seconds).unwrap() * 1000),
        };
        self.grants.push(Grant {
            source: Some(source),
            credential,
            scopes: terms.scopes_below(&self.grants[source].scopes),
            delegatable: terms.delegatable.unwrap_or(depth != Some(0)),
            depth,
            end,
            terms: terms.clone(),
            suspended: false,
            revoked: false,
        });
        self.happened("grant.delegated")
    }

    /// Which of the six rules a delegation breaks.
    fn beyond(&self, source: usize, terms: &Terms) -> Option<Code> {
        let scopes = terms.scopes_below(&self.grants[source].scopes);
        if scopes.is_empty() {
            return Some(Code::InvalidField);
        }
        if self.lineage(source).any(|above| !scopes.is_subset(&self.grants[above].scopes)) {
            return Some(Code::GrantScopeInsufficient);
        }
        if self.lineage(source).any(|above| self.is_wider(terms, source, above)) {
            return Some(Code::GrantConstraintExceeded);
        }
        let source_grant = &self.grants[source];
        if !source_grant.delegatable {
            return Some(Code::GrantNotDelegatable);
        }
        if source_grant.depth == Some(0) {
            return Some(Code::DelegationDepthExceeded);
        }
        if let (Some(asked), Some(have)) = (terms.depth, source_grant.depth)
            && asked.is_none_or(|asked| asked > have - 1)
        {
            return Some(Code::DelegationDepthExceeded);
        }
        for part in 0..2 {
            let bound: BTreeSet<_> =
                self.lineage(source).filter_map(|above| self.grants[above].terms.context[part]).collect();
            if terms.context[part].is_some_and(|own| bound.iter().any(|above| *above != own)) {
                return Some(Code::GrantContextMismatch);
            }
        }
        if let (Some(asked), Some(end)) = (terms.lifetime, source_grant.end)
            && asked.is_none_or(|seconds| self.now + i64::try_from(seconds).unwrap() * 1000 > end)
        {
            return Some(Code::GrantExpiryExceeded);
        }
        None
    }

    /// Whether the terms state something that a grant above does not allow, or drop something that it denies.
    fn is_wider(&self, terms: &Terms, source: usize, above: usize) -> bool {
        let above = &self.grants[above].terms;
        if let (Some(own), Some(limit)) = (terms.calls_per_hour, above.calls_per_hour)
            && own > limit
        {
            return true;
        }
        terms.rules.iter().any(|(name, own)| {
            let Some(rule) = above.rules.get(name) else { return false };
            let unlisted = match (&own.values, &rule.values) {
                (Some(own), Some(listed)) => !own.is_subset(listed),
                _ => false,
            };
            let own_most = own.max.unwrap_or(i64::MAX);
            let too_large = match (&own.values, rule.max) {
                (Some(values), Some(max)) => values.iter().any(|value| *value <= own_most && *value > max),
                _ => false,
            };
            let raised = matches!((own.max, rule.max), (Some(own), Some(max)) if own > max);
            // A delegation that denies values of a parameter must deny all that are denied so far.
            let denied_so_far = self.lineage(source).filter_map(|above| self.grants[above].terms.rules.get(name));
            let dropped =
                !own.denied.is_empty() && denied_so_far.into_iter().any(|rule| !rule.denied.is_subset(&own.denied));
            unlisted || too_large || raised || dropped
        })
    }

    fn suspend(&mut self, grant: usize) -> Outcome {
        match self.status(grant) {
            GrantStatus::Active => {
                self.grants[grant].suspended = true;
                self.happened("grant.suspended")
            }
            status => Outcome::Refused(ended(status)),
        }
    }

    fn resume(&mut self, grant: usize) -> Outcome {
        match self.status(grant) {
            GrantStatus::Suspended => {
                self.grants[grant].suspended = false;
                self.happened("grant.resumed")
            }
            GrantStatus::Active => Outcome::Refused(Code::GrantNotSuspended),
            status => Outcome::Refused(ended(status)),
        }
    }

    fn revoke(&mut self, grants: Vec<usize>) -> Outcome {
        let mut count = 0;
        for grant in grants {
            if !matches!(self.status(grant), GrantStatus::Revoked | GrantStatus::Expired) {
                self.grants[grant].revoked = true;
                self.happened("grant.revoked");
                count += 1;
            }
        }
        Outcome::Ended(count)
    }

    fn rotate(&mut self, credential: usize) -> Outcome {
        let held = &mut self.credentials[credential];
        if held.revoked {
            return Outcome::Refused(Code::CredentialRevoked);
        }
        if held.end.is_some_and(|end| end <= self.now) {
            held.end = None;
        }
        self.happened("credential.rotated")
    }

    fn revoke_credential(&mut self, credential: usize) -> Outcome {
        if self.credentials[credential].revoked {
            return Outcome::Ended(0);
        }
        self.credentials[credential].revoked = true;
        self.happened("credential.revoked");
        let on_it = (0..self.grants.len()).filter(|grant| self.grants[*grant].credential == credential).collect();
        self.revoke(on_it)
    }

    fn wait(&mut self, millis: i64) -> Outcome {
        let before = self.now;
        self.now += millis;
        let due = |grant: &&Grant| !grant.revoked && grant.end.is_some_and(|end| before < end && end <= self.now);
        let count = self.grants.iter().filter(due).count();
        for _ in 0..count {
            self.happened("grant.expired");
        }
        Outcome::Done
    }

    fn happened(&mut self, kind: &str) -> Outcome {
        *self.transitions.entry(kind.to_owned()).or_default() += 1;
        Outcome::Done
    }

    fn credential_in_the_way(&self, credential: usize) -> Option<Code> {
        let credential = &self.credentials[credential];
        if credential.revoked {
            return Some(Code::CredentialRevoked);
        }
        credential.end.is_some_and(|end| end <= self.now).then_some(Code::CredentialExpired)
    }

    /// The grant and all that it was delegated from.
    fn lineage(&self, grant: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(grant), |grant| self.grants[*grant].source)
    }

    /// The grant and all that was delegated from it.
    fn subtree(&self, root: usize) -> Vec<usize> {
        (0..self.grants.len()).filter(|grant| self.lineage(*grant).any(|above| above == root)).collect()
    }
}

/// The index of a grant, counted from the newest, so that small numbers make long lineages.
pub fn pick(count: usize, number: usize) -> Option<usize> {
    count.checked_sub(1).map(|newest| newest - number % count)
}

fn ended(status: GrantStatus) -> Code {
    match status {
        GrantStatus::Expired => Code::GrantExpired,
        GrantStatus::Revoked => Code::GrantRevoked,
        GrantStatus::Suspended | GrantStatus::Active => Code::GrantSuspended,
    }
}
