//! A document as text, indented, with the members of an object in order: `type` first, because schemathesis skips the limits
//! of a parameter when it reads them before its type, and then by name, because the order in which serde_json keeps members
//! depends on features that other crates of the same build switch on.

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The text of a document, ending with a newline.
pub fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(&TypeFirst(value)).unwrap_or_default();
    text.push('\n');
    text
}

struct TypeFirst<'a>(&'a Value);

impl Serialize for TypeFirst<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(name, _)| (*name != "type", *name));
                for (name, value) in members {
                    map.serialize_entry(name, &TypeFirst(value))?;
                }
                map.end()
            }
            Value::Array(elements) => {
                let mut list = serializer.serialize_seq(Some(elements.len()))?;
                for element in elements {
                    list.serialize_element(&TypeFirst(element))?;
                }
                list.end()
            }
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_type_stands_first_and_nothing_else_changes() {
        let value = json!({"minimum": 1, "type": "integer", "items": [{"a": null, "type": "b"}]});
        let text = pretty(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(text.find("\"type\": \"integer\"").unwrap() < text.find("items").unwrap(), "{text}");
        assert!(text.find("\"type\": \"b\"").unwrap() < text.find("\"a\"").unwrap(), "{text}");
    }
}
