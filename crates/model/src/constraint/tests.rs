//! What the constraints of RFC-0014 permit, how they are read and written, and that they only ever narrow.

mod narrowing;
mod networks;
mod parameters;
mod properties;
mod reading;

use serde_json::{Value, json};

use super::*;

/// Constraints from their JSON.
fn constraints(value: Value) -> Constraints {
    Constraints::from_json(&value).unwrap()
}

/// Constraints with nothing but these allowed parameters.
fn allowed(parameters: Value) -> Constraints {
    constraints(json!({"allowed_parameters": parameters}))
}

/// Constraints with nothing but these denied parameters.
fn denied(parameters: Value) -> Constraints {
    constraints(json!({"denied_parameters": parameters}))
}

/// Why this JSON is refused.
fn refusal(value: Value) -> ConstraintError {
    Constraints::from_json(&value).unwrap_err()
}

/// Whether the parameters keep to the constraints.
fn permits(constraints: &Constraints, parameters: &Value) -> bool {
    constraints.check_parameters(parameters, None).is_ok()
}

fn permits_by(constraints: &Constraints, schema: &Value, parameters: &Value) -> bool {
    constraints.check_parameters(parameters, Some(schema)).is_ok()
}

/// JSON from text, where the way in which a number is written matters.
fn parsed(text: &str) -> Value {
    crate::strict_json::parse(text.as_bytes()).unwrap()
}
