//! Parameters as arguments: `name=text`, `name:=json`, or a JSON object.

use serde_json::{Map, Value};
use toolgate_model::strict_json;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) value: Value,
}

/// Parses `NAME=TEXT` or `NAME:=JSON`: the separator that comes first counts.
pub(super) fn parse_parameter(text: &str) -> Result<Parameter, String> {
    let advice = "use NAME=TEXT for text or NAME:=JSON for other values, such as currency=usd or amount:=2000";
    let (name, value) = text.split_once('=').ok_or(advice)?;
    let (name, value) = match name.strip_suffix(':') {
        Some(name) => {
            let value = strict_json::parse(value.as_bytes()).map_err(|error| format!("{error}; {advice}"))?;
            (name, value)
        }
        None => (name, Value::from(value)),
    };
    if name.is_empty() {
        return Err(advice.to_owned());
    }
    Ok(Parameter { name: name.to_owned(), value })
}

pub(super) fn parse_object(text: &str) -> Result<Map<String, Value>, String> {
    match strict_json::parse(text.as_bytes()) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("use a JSON object, such as '{\"amount\": 2000}'".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_text_and_json_is_json() {
        for (text, name, value) in [
            ("currency=usd", "currency", json!("usd")),
            ("amount=2000", "amount", json!("2000")),
            ("amount:=2000", "amount", json!(2000)),
            ("empty=", "empty", json!("")),
            ("note=a:=b", "note", json!("a:=b")),
            ("urn:x=1", "urn:x", json!("1")),
            ("tags:=[\"a=b\"]", "tags", json!(["a=b"])),
            ("gone:=null", "gone", json!(null)),
        ] {
            let expected = Parameter { name: name.to_owned(), value };
            assert_eq!(parse_parameter(text), Ok(expected), "{text}");
        }
        for bad in ["", "amount", "=1", ":=1", "amount:=", "amount:=usd", "a:={\"x\":1,\"x\":2}"] {
            assert!(parse_parameter(bad).is_err(), "{bad}");
        }
        assert!(parse_object("[1]").is_err() && parse_object("{\"a\":1,\"a\":2}").is_err());
    }
}
