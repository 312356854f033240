//! What a principal must hold to use a tool, whatever its grants say: scopes like `tools:mail:send`. A principal may hold
//! one with `*` in it, which covers several; a tool requires them by name.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::held::HeldScopes;

mod held;

#[cfg(test)]
mod tests;

/// The longest scope, in bytes, and how many segments it may have.
const LENGTH_LIMIT: usize = 128;
const SEGMENT_LIMIT: usize = 8;
/// A segment that stands for others.
const ANY: &str = "*";

/// A scope that a principal may hold: segments between colons, each a name or `*`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PrincipalScope(String);

/// A scope that a tool requires: one without `*`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RequiredScope(String);

/// The text is no scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PrincipalScopeError {
    /// Nothing, or too much.
    #[error("must have 1 to {LENGTH_LIMIT} characters")]
    Length,
    /// Too many parts.
    #[error("must have at most {SEGMENT_LIMIT} segments between colons")]
    Segments,
    /// A part that is no name.
    #[error("must be segments of letters, digits and . _ - with a colon between two, as in tools:mail:send")]
    Segment,
    /// A pattern where a name is needed.
    #[error("must not contain *: a tool requires scopes by name")]
    Wildcard,
}

/// Why the scopes that a principal holds do not open a tool. Both deny.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotCovered {
    /// It does not hold these.
    #[error("the principal does not hold {}", .0.join(", "))]
    Missing(Vec<String>),
    /// Whether it holds them cannot be told, because this one, on either side, cannot be understood.
    #[error("the scope `{scope}` cannot be evaluated: it {error}")]
    Unevaluable {
        /// The scope, as it was written.
        scope: String,
        /// What is wrong with it.
        error: PrincipalScopeError,
    },
}

/// Whether every required scope is covered by one that is held.
///
/// Both sides come as they were written. A required scope that cannot be understood is never covered. A held one that
/// cannot be understood covers nothing, and where something is not covered it is named as the reason.
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
    /// Checks and wraps the text.
    pub fn parse(text: &str) -> Result<Self, PrincipalScopeError> {
        check(text).map(|()| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether who holds this one has what is required. Segments must be equal; `*` stands for one segment, and at the
    /// end for one or more.
    pub fn covers(&self, required: &RequiredScope) -> bool {
        covers(&self.0, &required.0)
    }
}

impl RequiredScope {
    /// Checks and wraps the text.
    pub fn parse(text: &str) -> Result<Self, PrincipalScopeError> {
        check_required(text).map(|()| Self(text.to_owned()))
    }

    /// The text.
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

/// Both are known to be scopes.
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
    // What nobody understands may be anything; what quotes it stays short.
    NotCovered::Unevaluable { scope: scope.chars().take(LENGTH_LIMIT).collect(), error }
}
