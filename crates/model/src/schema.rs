//! JSON Schema 2020-12, compiled once and checked on every call. Strict: keywords that would be ignored, formats that
//! are not checked and external references are rejected, so that everything in a schema is enforced.

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

/// The size limit of one pattern's automaton, in bytes.
const PATTERN_LIMIT: usize = 1024 * 1024;

#[derive(Debug)]
pub struct Schema {
    document: Value,
    validator: Validator,
}

/// An invalid or unenforceable schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{path}` {reason}")]
pub struct SchemaError {
    /// The path in the schema; empty at its top.
    pub path: String,
    /// What is wrong and what to write instead.
    pub reason: String,
}

pub(crate) fn is_keyword(name: &str) -> bool {
    keyword::under(name).is_some()
}

/// The part of a schema that one of its references names.
pub(crate) fn referenced<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    recursion::target(document, reference)
}

impl Schema {
    pub fn compile(document: &Value) -> Result<Self, SchemaError> {
        keyword::check(document)?;
        recursion::check(document)?;
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false)
            // The linear engine: input of an agent cannot make a pattern slow.
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_LIMIT).dfa_size_limit(PATTERN_LIMIT));
        let validator = options.build(document).map_err(|error| violation::in_schema(&error))?;
        Ok(Self { document: document.clone(), validator })
    }

    /// Checks a value; returns the first violation.
    pub fn check(&self, instance: &Value) -> Result<(), SchemaViolation> {
        self.validator.validate(instance).map_err(|error| SchemaViolation::of(&error, &self.document))
    }

    /// Checks what an agent sends to a service. An undeclared member must not be another spelling of a declared one.
    pub fn check_parameters(&self, instance: &Value) -> Result<(), SchemaViolation> {
        self.check(instance)?;
        Declared::by(Some(&self.document)).check_spelling(instance, "")
    }
}
