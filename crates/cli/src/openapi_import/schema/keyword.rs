//! The value types of schema keywords. An invalid value, which is common in documents, removes the keyword and not the tool.

use serde_json::Value;

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// The type of the value of a keyword.
pub(super) enum Holds {
    Anything,
    /// A whole number that is not negative.
    Count,
    Flag,
    List,
    Names,
    NamesByName,
    Number,
    Positive,
    Schema,
    SchemaList,
    SchemaMap,
    Text,
    Types,
}

/// `None` if the keyword would not be enforced. Definitions are collected from references.
pub(super) fn holds(keyword: &str) -> Option<Holds> {
    Some(match keyword {
        "const" | "default" => Holds::Anything,
        "maxContains" | "maxItems" | "maxLength" | "maxProperties" | "minContains" | "minItems" | "minLength"
        | "minProperties" => Holds::Count,
        "deprecated" | "readOnly" | "uniqueItems" | "writeOnly" => Holds::Flag,
        "enum" | "examples" => Holds::List,
        "required" => Holds::Names,
        "dependentRequired" => Holds::NamesByName,
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" => Holds::Number,
        "multipleOf" => Holds::Positive,
        "additionalProperties"
        | "contains"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Holds::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::SchemaList,
        "dependentSchemas" | "patternProperties" | "properties" => Holds::SchemaMap,
        "$comment" | "contentEncoding" | "contentMediaType" | "description" | "format" | "pattern" | "title" => {
            Holds::Text
        }
        "type" => Holds::Types,
        _ => return None,
    })
}

impl Holds {
    /// The value, if it is valid.
    pub(super) fn checked(&self, value: &Value) -> Option<Value> {
        let fits = match self {
            Self::Anything => true,
            Self::Count => value.as_u64().is_some(),
            Self::Flag => value.is_boolean(),
            Self::List => value.as_array().is_some_and(|list| !list.is_empty()),
            Self::Names => return names(value),
            Self::NamesByName => {
                value.as_object().is_some_and(|lists| lists.values().all(|list| names(list).is_some()))
            }
            Self::Number => value.is_number(),
            Self::Positive => value.as_f64().is_some_and(|number| number > 0.0),
            Self::Text => value.is_string(),
            Self::Types => match value {
                Value::Array(list) => !list.is_empty() && list.iter().all(is_type) && is_distinct(list),
                one => is_type(one),
            },
            // Those that hold schemas and got here hold something else.
            Self::Schema | Self::SchemaList | Self::SchemaMap => false,
        };
        fits.then(|| value.clone())
    }
}

/// A list of texts, each once.
fn names(value: &Value) -> Option<Value> {
    let mut names: Vec<Value> = Vec::new();
    for name in value.as_array()? {
        if !name.is_string() {
            return None;
        }
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    Some(Value::Array(names))
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn is_distinct(list: &[Value]) -> bool {
    list.iter().enumerate().all(|(position, value)| !list.iter().take(position).any(|other| other == value))
}
