//! Work: intents, the plans and tasks that carry them out, the coordinators that govern them, and what they cost. The shapes
//! are those of the Python client of OpenIntent.

use serde_json::{Value, json};

use crate::document::{merge, refusal};
use crate::endpoint::Group;
use crate::error::ErrorBody;
use crate::schemas::Schemas;

pub mod coordinators;
pub mod costs;
pub mod events;
pub mod intents;
pub mod leases;
pub mod objects;
pub mod plans;
pub mod tasks;

/// All endpoints about work.
pub(crate) fn groups() -> Vec<Group> {
    vec![
        intents::group(),
        events::group(),
        leases::group(),
        tasks::group(),
        plans::group(),
        coordinators::group(),
        costs::group(),
    ]
}

/// The same where the header may be absent.
fn describe_optional_version(operation: &mut Value, schemas: &mut Schemas) {
    describe_version(operation, schemas);
    if let Some(parameter) = operation.pointer_mut("/parameters/0").and_then(Value::as_object_mut) {
        parameter.remove("required");
    }
}

/// Describes the header with the version that a change was decided on. Without it, an intent is refused with 400.
fn describe_version(operation: &mut Value, _: &mut Schemas) {
    let parameter = json!({
        "name": "If-Match",
        "in": "header",
        "required": true,
        "description": "The version that the change was decided on, as it was read; quotes are accepted.",
        "schema": {"type": "string", "pattern": "^([0-9]{1,10}|\"[0-9]{1,10}\")$"},
    });
    merge(operation, json!({"parameters": [parameter]}));
}

/// The same for tasks and plans, which are refused with 428.
fn describe_required_version(operation: &mut Value, schemas: &mut Schemas) {
    describe_version(operation, schemas);
    let schema = schemas.reply::<ErrorBody>();
    merge(operation, json!({"responses": {"428": refusal("The header `If-Match` is missing.", &schema)}}));
}
