//! The scopes of one principal, as stored.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{NotCovered, PrincipalScope, check, covers, covers_all};
use crate::scope::SCOPE_LIMIT;

/// The scopes that a principal holds, ordered by name.
///
/// New scopes are validated. Stored ones are kept unchanged, even if they are no longer valid: they then cover nothing,
/// and checks report that they could not be evaluated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct HeldScopes(BTreeSet<String>);

impl HeldScopes {
    /// Stored scopes, valid or not.
    pub fn from_stored(texts: impl IntoIterator<Item = String>) -> Self {
        Self(texts.into_iter().collect())
    }

    /// Whether every required scope is covered by one of these.
    pub fn cover_all<'a>(&'a self, required: impl IntoIterator<Item = &'a str>) -> Result<(), NotCovered> {
        covers_all(self.iter(), required)
    }

    /// The first of these that allows something that `other` does not.
    pub fn first_beyond<'a>(&'a self, other: &Self) -> Option<&'a str> {
        self.iter().find(|scope| !other.includes(scope))
    }

    /// Those of these that allow something that `other` does not.
    pub fn beyond(&self, other: &Self) -> Self {
        Self(self.0.iter().filter(|scope| !other.includes(scope)).cloned().collect())
    }

    fn includes(&self, scope: &str) -> bool {
        // Matching a pattern as if it were a name is correct here: `*` is not a name, so only a `*` covers it, and only
        // one at the end covers one at the end.
        self.0.contains(scope) || self.iter().any(|held| check(held).is_ok() && covers(held, scope))
    }

    /// In order, as written.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromIterator<PrincipalScope> for HeldScopes {
    fn from_iter<I: IntoIterator<Item = PrincipalScope>>(scopes: I) -> Self {
        Self(scopes.into_iter().map(|scope| scope.0).collect())
    }
}

impl<'de> Deserialize<'de> for HeldScopes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let scopes = Vec::<PrincipalScope>::deserialize(deserializer)?;
        if scopes.len() > SCOPE_LIMIT {
            return Err(serde::de::Error::custom(format_args!(
                "must have at most {SCOPE_LIMIT} scopes, has {}",
                scopes.len()
            )));
        }
        Ok(scopes.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(scopes: &[&str]) -> HeldScopes {
        scopes.iter().map(|scope| PrincipalScope::parse(scope).unwrap()).collect()
    }

    #[test]
    fn a_stored_scope_that_cannot_be_understood_stays_and_is_the_reason_of_a_denial() {
        let stored = HeldScopes::from_stored(["a@b".to_owned(), "mail:*".to_owned()]);
        assert_eq!(stored.iter().collect::<Vec<_>>(), ["a@b", "mail:*"]);
        assert_eq!(stored.cover_all(["mail:send"]), Ok(()));
        let denied = stored.cover_all(["mail:send", "a"]).unwrap_err();
        assert!(matches!(&denied, NotCovered::Unevaluable { scope, .. } if scope == "a@b"), "{denied}");
        assert_eq!(serde_json::to_string(&stored).unwrap(), r#"["a@b","mail:*"]"#);
        assert!(serde_json::from_str::<HeldScopes>(r#"["a@b"]"#).is_err(), "what is given is checked");
    }

    #[test]
    fn at_most_so_many_scopes_are_held() {
        let texts: Vec<String> = (0..=SCOPE_LIMIT).map(|number| format!("a:{number}")).collect();
        let read = |texts: &[String]| serde_json::from_value::<HeldScopes>(serde_json::json!(texts));
        assert!(read(&texts[1..]).is_ok());
        assert!(read(&texts).is_err());
    }

    #[test]
    fn what_reaches_further_than_another_set_is_found() {
        let held = given(&["mail:*", "files:*:read", "time"]);
        for within in [&["mail:send", "mail:send:now", "mail:*", "mail:a:*"][..], &["files:x:read", "time"], &[]] {
            assert_eq!(given(within).first_beyond(&held), None, "{within:?}");
        }
        for beyond in ["mail", "*", "*:send", "files:*", "files:*:*", "files:x:write", "time:*", "tim"] {
            assert_eq!(given(&["mail:send", beyond]).first_beyond(&held), Some(beyond));
        }
        let unreadable = HeldScopes::from_stored(["a@b".to_owned()]);
        assert_eq!(unreadable.first_beyond(&unreadable), None);
        assert_eq!(given(&["a"]).first_beyond(&unreadable), Some("a"));
    }
}
