//! The Cedar schema of a catalog: which principals, tools, actions and arguments rules may speak of. It is written as
//! text, which people read and Cedar parses, so that both know the same.

use std::collections::BTreeSet;

use cedar_policy::{PolicySet, Schema};
use thiserror::Error;
use toolgate_gate::ports::policy_book::PolicyTool;

use super::shape::Shape;

mod relevance;
mod text;

#[cfg(test)]
mod tests;

/// What stands for all tools that are not in the catalog: their arguments are only seen as text.
pub const EXTERNAL: &str = "external";

/// Why there is no schema of a catalog.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaProblem {
    /// Rules could not tell two tools apart.
    #[error("the tool `{0}` is there twice; give one of the two another name")]
    Twice(String),
    /// The name stands for something else.
    #[error("no tool can be called `{EXTERNAL}`, which stands for all tools that are not in the catalog; rename it")]
    Reserved,
    /// Cedar does not take the text.
    #[error("the schema of the catalog is refused by Cedar: {0}")]
    Refused(String),
}

/// The schema in Cedar's own notation.
pub fn schema_text(tools: &[PolicyTool]) -> String {
    text::write(tools.iter().map(|tool| (tool.name.as_str(), arguments(tool))))
}

/// The schema of the whole catalog.
pub fn schema(tools: &[PolicyTool]) -> Result<Schema, SchemaProblem> {
    check_names(tools)?;
    parse(&schema_text(tools))
}

/// A smaller schema by which exactly the same is wrong with these rules as by that of the whole catalog.
///
/// Cedar checks every rule once for every action, which takes long for a catalog of a thousand tools. But tools that no
/// rule names and that differ only in arguments that no rule names are all the same to it, so one of them is enough.
pub fn schema_about(tools: &[PolicyTool], rules: &PolicySet) -> Result<Schema, SchemaProblem> {
    check_names(tools)?;
    parse(&text::write(relevance::relevant(tools, rules).into_iter()))
}

/// How the arguments of a tool look to rules.
fn arguments(tool: &PolicyTool) -> Shape {
    Shape::of_parameters(tool.definition.parameters.as_ref())
}

fn check_names(tools: &[PolicyTool]) -> Result<(), SchemaProblem> {
    let mut names = BTreeSet::new();
    for tool in tools {
        if tool.name == EXTERNAL {
            return Err(SchemaProblem::Reserved);
        }
        if !names.insert(&tool.name) {
            return Err(SchemaProblem::Twice(tool.name.clone()));
        }
    }
    Ok(())
}

fn parse(text: &str) -> Result<Schema, SchemaProblem> {
    let parsed = Schema::from_cedarschema_str(text);
    parsed.map(|(schema, _)| schema).map_err(|error| SchemaProblem::Refused(error.to_string()))
}
