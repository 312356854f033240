//! Scopes: the operations of a service that a credential supports and a grant selects (`charges.read`).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::text::identifiers;

identifiers! {
    /// One scope. Scopes match by equality: there are no wildcards that could widen a grant later.
    Scope;
}

/// Scopes, ordered by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ScopeSet(BTreeSet<Scope>);

/// The maximum number of scopes of one credential, grant or principal.
pub const SCOPE_LIMIT: usize = 1024;

impl ScopeSet {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, scope: &Scope) -> bool {
        self.0.contains(scope)
    }

    /// Those that `other` does not have: empty if these are within `other`.
    pub fn beyond(&self, other: &Self) -> Vec<Scope> {
        self.0.difference(&other.0).cloned().collect()
    }

    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Scope> {
        self.0.iter()
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().collect())
    }
}

impl<'de> Deserialize<'de> for ScopeSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let scopes = Vec::<Scope>::deserialize(deserializer)?;
        if scopes.len() > SCOPE_LIMIT {
            return Err(serde::de::Error::custom(format_args!(
                "must have at most {SCOPE_LIMIT} scopes, has {}",
                scopes.len()
            )));
        }
        Ok(Self(scopes.into_iter().collect()))
    }
}
