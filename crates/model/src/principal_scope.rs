//! Scopes of principals, such as `tools:mail:send`, which a tool may require regardless of grants. A principal may hold
//! one with `*`, which covers several; a tool requires scopes by name.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::held::HeldScopes;

mod held;

#[cfg(test)]
mod tests;

/// The maximum length of a scope in bytes, and the maximum number of segments.
const LENGTH_LIMIT: usize = 128;
const SEGMENT_LIMIT: usize = 8;
/// The wildcard segment.
const ANY: &str = "*";

/// A scope that a principal may hold: segments between colons, each a name or `*`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PrincipalScope(String);

/// A scope that a tool requires: one without `*`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RequiredScope(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PrincipalScopeError {
    #[error("must have 1 to {LENGTH_LIMIT} characters")]
    Length,
    #[error("must have at most {SEGMENT_LIMIT} segments between colons")]
    Segments,
    #[error("must consist of segments of letters, digits and . _ - separated by colons, such as tools:mail:send")]
    Segment,
    #[error("must not contain *: a tool requires scopes by name")]
    Wildcard,
}

/// Why the scopes of a principal do not cover a tool. Both deny.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotCovered {
    #[error("the principal does not hold {}", .0.join(", "))]
    Missing(Vec<String>),
    /// A scope on either side is invalid, so that coverage is unknown.
    #[error("the scope `{scope}` cannot be evaluated: it {error}")]
    Unevaluable { scope: String, error: PrincipalScopeError },
}

/// Whether every required scope is covered by one that is held.
///
/// Both sides are unparsed. An invalid required scope is never covered. An invalid held scope covers nothing, and is
/// named as the reason if something is not covered.
pub fn covers_all<'a>(
    held: impl IntoIterator<Item = &'a str>,
    required: impl IntoIterator<Item = &'a str>,
) -> Result<(), NotCovered> {
    let mut required = required.into_iter().peekable();
    if required.peek().is_none() {
        return Ok(());
    }
    let (held, unreadable): (Vec<&str>, Vec<&str>) = held.into_iter().partition(|scope| check(scope).is_ok());
    let mut missing = Vec::new();
    for scope in required {
        check_required(scope).map_err(|error| unevaluable(scope, error))?;
        if !held.iter().any(|held| covers(held, scope)) {
            missing.push(scope.to_owned());
        }
    }
    let reason = unreadable.iter().find_map(|scope| check(scope).err().map(|error| unevaluable(scope, error)));
    match (missing.is_empty(), reason) {
        (true, _) => Ok(()),
        (false, Some(unevaluable)) => Err(unevaluable),
        (false, None) => Err(NotCovered::Missing(missing)),
    }
}

impl PrincipalScope {
    pub fn parse(text: &str) -> Result<Self, PrincipalScopeError> {
        check(text).map(|()| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a holder of this scope has the required one. Segments must be equal; `*` stands for one segment, and at
    /// the end for one or more.
    pub fn covers(&self, required: &RequiredScope) -> bool {
        covers(&self.0, &required.0)
    }
}

impl RequiredScope {
    pub fn parse(text: &str) -> Result<Self, PrincipalScopeError> {
        check_required(text).map(|()| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! as_text {
    ($($name:ident)+) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    )+};
}

as_text! { PrincipalScope RequiredScope }

/// Both are valid scopes.
fn covers(held: &str, required: &str) -> bool {
    let (mut held, mut required) = (held.split(':').peekable(), required.split(':'));
    loop {
        match (held.next(), required.next()) {
            (None, None) => return true,
            (Some(ANY), Some(_)) if held.peek().is_none() => return true,
            (Some(own), Some(other)) if own == ANY || own == other => {}
            _ => return false,
        }
    }
}

fn check(text: &str) -> Result<(), PrincipalScopeError> {
    if text.is_empty() || text.len() > LENGTH_LIMIT {
        return Err(PrincipalScopeError::Length);
    }
    if !text.split(':').all(is_segment) {
        return Err(PrincipalScopeError::Segment);
    }
    if text.split(':').count() > SEGMENT_LIMIT {
        return Err(PrincipalScopeError::Segments);
    }
    Ok(())
}

fn check_required(text: &str) -> Result<(), PrincipalScopeError> {
    check(text)?;
    if text.contains(ANY) { Err(PrincipalScopeError::Wildcard) } else { Ok(()) }
}

fn is_segment(text: &str) -> bool {
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    text == ANY || (!text.is_empty() && is_name(text))
}

fn unevaluable(scope: &str, error: PrincipalScopeError) -> NotCovered {
    // An invalid scope may be anything; the quote is kept short.
    NotCovered::Unevaluable { scope: scope.chars().take(LENGTH_LIMIT).collect(), error }
}
