//! JSON Schema 2020-12, compiled once and checked on every call. Read strictly: a keyword that would be ignored, a
//! format that nobody checks and a reference that leads outside are refused, so that what a schema says is enforced.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use thiserror::Error;

pub(crate) use self::declared::Declared;
pub(crate) use self::keyword::FORMATS;
pub use self::violation::SchemaViolation;

mod declared;
mod keyword;
mod recursion;
mod violation;

#[cfg(test)]
mod tests;

/// How large the automaton of one pattern may be, in bytes.
const PATTERN_LIMIT: usize = 1024 * 1024;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    document: Value,
    validator: Validator,
}

/// A schema that cannot be understood or enforced.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{path}` {reason}")]
pub struct SchemaError {
    /// Where in the schema; empty at its top.
    pub path: String,
    /// What is wrong and what to write instead.
    pub reason: String,
}

/// Whether this is a keyword of schemas.
pub(crate) fn is_keyword(name: &str) -> bool {
    keyword::under(name).is_some()
}

/// The part of a schema that a reference of it names.
pub(crate) fn referenced<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    recursion::target(document, reference)
}

impl Schema {
    /// Compiles a schema.
    pub fn compile(document: &Value) -> Result<Self, SchemaError> {
        keyword::check(document)?;
        recursion::check(document)?;
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false)
            // The linear engine: no pattern can be made to run long by what an agent sends.
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_LIMIT).dfa_size_limit(PATTERN_LIMIT));
        let validator = options.build(document).map_err(|error| violation::in_schema(&error))?;
        Ok(Self { document: document.clone(), validator })
    }

    /// Checks a value; the first thing that is wrong with it.
    pub fn check(&self, instance: &Value) -> Result<(), SchemaViolation> {
        self.validator.validate(instance).map_err(|error| SchemaViolation::of(&error, &self.document))
    }

    /// Checks what an agent sends to a service. A member that the schema does not declare must not go by another spelling
    /// of one that it does.
    pub fn check_parameters(&self, instance: &Value) -> Result<(), SchemaViolation> {
        self.check(instance)?;
        Declared::by(Some(&self.document)).check_spelling(instance, "")
    }
}
