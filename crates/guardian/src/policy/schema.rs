//! The Cedar schema of a catalog: the principals, tools, actions and arguments that rules can refer to. It is generated
//! as text, which people read and Cedar parses, so that both see the same.

use std::collections::BTreeSet;

use cedar_policy::{PolicySet, Schema};
use thiserror::Error;
use toolgate_gate::ports::policy_book::PolicyTool;

use super::shape::Shape;

mod relevance;
mod text;

#[cfg(test)]
mod tests;

/// The name that stands for all tools outside the catalog: their arguments are visible only as text.
pub const EXTERNAL: &str = "external";

/// Why a catalog has no schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaProblem {
    #[error("duplicate tool `{0}`; rename one of the two")]
    Twice(String),
    #[error("the tool name `{EXTERNAL}` is reserved for tools outside the catalog; rename the tool")]
    Reserved,
    #[error("Cedar rejects the schema of the catalog: {0}")]
    Refused(String),
}

/// The schema in Cedar syntax.
pub fn schema_text(tools: &[PolicyTool]) -> String {
    text::write(tools.iter().map(|tool| (tool.name.as_str(), arguments(tool))))
}

/// The schema of the whole catalog.
pub fn schema(tools: &[PolicyTool]) -> Result<Schema, SchemaProblem> {
    check_names(tools)?;
    parse(&schema_text(tools))
}

/// A smaller schema that finds exactly the same errors in these rules as that of the whole catalog.
///
/// Cedar checks every rule once for every action, which takes long for a catalog of a thousand tools. Tools that no
/// rule names and that differ only in arguments that no rule names are equivalent to it, so one of them is enough.
pub fn schema_about(tools: &[PolicyTool], rules: &PolicySet) -> Result<Schema, SchemaProblem> {
    check_names(tools)?;
    parse(&text::write(relevance::relevant(tools, rules).into_iter()))
}

/// The shape of a tool's arguments.
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
