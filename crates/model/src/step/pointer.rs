//! JSON pointers (RFC 6901) in declarations of steps.

use serde_json::Value;

use crate::service::DefinitionError;
use crate::service::reading::refuse;

/// The longest pointer in a definition, in bytes.
const LIMIT: usize = 256;

/// Reads a pointer of a definition; the empty one is the whole document.
pub(super) fn read(value: &Value, path: &str) -> Result<String, DefinitionError> {
    let pointer = value.as_str().filter(|text| text.len() <= LIMIT && (text.is_empty() || text.starts_with('/')));
    let reason = format!("must be a JSON pointer of at most {LIMIT} bytes, such as /results, or empty");
    pointer.map(str::to_owned).ok_or_else(|| refuse(path, reason))
}

/// The text at a pointer: a string as it is, anything else as JSON.
pub(super) fn text_at(document: &Value, pointer: &str) -> Option<String> {
    match document.pointer(pointer)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
