//! Puts what guardians have modified in the place of the original.

use serde_json::{Map, Value};

use super::stream::drop_tokens;
use crate::guard::{Content, PartBody};
use crate::step::{StepError, StepQuestion};

/// Puts content back where the question has found it.
pub(crate) fn replace(
    document: &mut Value,
    question: &StepQuestion,
    content: Content<'static>,
) -> Result<(), StepError> {
    let other = || StepError::new(question.at.first().cloned().unwrap_or_default(), OTHER);
    match (&question.content, content) {
        (Content::Parts(before), Content::Parts(after)) if before.len() == after.len() => {
            for ((before, after), at) in before.iter().zip(after).zip(&question.at) {
                match (&before.body, after.body) {
                    (PartBody::Text(_), PartBody::Text(text)) => {
                        *document.pointer_mut(at).ok_or_else(other)? = Value::String(text);
                        drop_tokens(document, at);
                    }
                    (before, after) if *before == after => {}
                    _ => {
                        return Err(StepError::new(
                            at,
                            "only text can be modified here; what else there is can be denied",
                        ));
                    }
                }
            }
            Ok(())
        }
        (Content::Arguments(_), Content::Arguments(arguments)) => {
            let at = question.at.first().ok_or_else(other)?;
            let place = document.pointer_mut(at).ok_or_else(other)?;
            *place = written(place, at, arguments.into_owned());
            Ok(())
        }
        (Content::Result { .. }, Content::Result { value, .. }) => {
            let place = question.at.first().and_then(|at| document.pointer_mut(at)).ok_or_else(other)?;
            *place = match value.into_owned() {
                text @ Value::String(_) => text,
                // Blocks of content stay blocks; other values have no other form than their text.
                list @ Value::Array(_) if place.is_array() => list,
                other => Value::String(other.to_string()),
            };
            Ok(())
        }
        _ => Err(other()),
    }
}

const OTHER: &str = "a guardian replaced this content by content of another kind";

/// Arguments in the form that stands there: an object, its JSON text, or the free text of a custom tool.
fn written(place: &Value, at: &str, arguments: Map<String, Value>) -> Value {
    match (place, arguments.get("input")) {
        (Value::String(_), Some(Value::String(input))) if at.ends_with("/input") => Value::String(input.clone()),
        (Value::String(_), _) => Value::String(Value::Object(arguments).to_string()),
        _ => Value::Object(arguments),
    }
}
