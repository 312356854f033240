//! Schemas of MCP servers as schemas that the gate enforces. Servers write several drafts of JSON Schema and keywords of
//! their own; what means the same in 2020-12 is rewritten, what only describes is kept as a remark (`x-NAME`), and what
//! would be enforced differently or not at all is refused.

use serde_json::{Map, Value, json};

use crate::schema::is_keyword;
use crate::service::DefinitionError;
use crate::service::reading::{join, refuse};

/// The dialect that is enforced, and those of which only equal keywords are taken.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
const EARLIER: [&str; 4] = [
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/schema",
    "https://json-schema.org/draft/2019-09/schema",
];
/// Formats that the gate checks. Others describe.
const FORMATS: [&str; 16] = crate::schema::FORMATS;
/// How deep schemas may be nested.
const DEPTH_LIMIT: usize = 48;
/// Keywords that apply schemas in ways that the gate does not support.
const UNSUPPORTED: [&str; 5] = ["$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "$vocabulary"];

/// The schema of arguments: an object at the top.
pub(super) fn of_input(schema: &Value, path: &str) -> Result<Value, DefinitionError> {
    let mut members = match rewritten(schema, path)? {
        Value::Object(members) => members,
        _ => return Err(refuse(path, "must be an object")),
    };
    match members.get("type") {
        None => drop(members.insert("type".to_owned(), json!("object"))),
        Some(kind) if kind == "object" => {}
        Some(_) => return Err(refuse(&join(path, "type"), "must be object: arguments have names")),
    }
    Ok(Value::Object(members))
}

/// The schema of results.
pub(super) fn of_output(schema: &Value, path: &str) -> Result<Value, DefinitionError> {
    match rewritten(schema, path)? {
        Value::Object(mut members) => {
            // Says that this is a schema and no list of fields.
            members.entry("$schema").or_insert_with(|| json!(DIALECT));
            Ok(Value::Object(members))
        }
        _ => Err(refuse(path, "must be an object")),
    }
}

fn rewritten(schema: &Value, path: &str) -> Result<Value, DefinitionError> {
    let earlier = match schema.get("$schema").and_then(Value::as_str).map(|dialect| dialect.trim_end_matches('#')) {
        None => false,
        Some(DIALECT) => false,
        Some(dialect) if EARLIER.contains(&dialect) => true,
        Some(_) => {
            let reason = "must be the dialect of draft-06, draft-07, 2019-09 or 2020-12: no other is enforced";
            return Err(refuse(&join(path, "$schema"), reason));
        }
    };
    rewrite(schema, path, earlier, 0)
}

fn rewrite(schema: &Value, path: &str, earlier: bool, depth: usize) -> Result<Value, DefinitionError> {
    if depth > DEPTH_LIMIT {
        return Err(refuse(path, "is nested too deep"));
    }
    let Some(members) = schema.as_object() else { return Ok(schema.clone()) };
    let mut out = Map::new();
    for (keyword, value) in members {
        let at = join(path, keyword);
        let below = |value: &Value, at: &str| rewrite(value, at, earlier, depth + 1);
        let (name, value) = match (keyword.as_str(), value) {
            ("$schema", _) if earlier || depth > 0 => continue,
            ("$id" | "id", Value::String(_)) if depth == 0 => continue,
            ("$id", _) => return Err(refuse(&at, "is not supported inside a schema")),
            (unsupported, _) if UNSUPPORTED.contains(&unsupported) => {
                return Err(refuse(&at, "is not supported; the schema could not be enforced"));
            }
            ("items", Value::Array(items)) if earlier => ("prefixItems", listed(items, &at, below)?),
            ("additionalItems", _) if earlier => match members.get("items") {
                Some(Value::Array(_)) => ("items", below(value, &at)?),
                // Means nothing without a list.
                _ => continue,
            },
            ("dependencies", Value::Object(_)) if earlier => {
                split_dependencies(value, &at, &mut out, below)?;
                continue;
            }
            ("format", Value::String(format)) if !FORMATS.contains(&format.as_str()) => ("x-format", value.clone()),
            ("minContains" | "maxContains", _) if !members.contains_key("contains") => continue,
            ("then" | "else", _) if !members.contains_key("if") => continue,
            (
                "if"
                | "then"
                | "else"
                | "not"
                | "additionalProperties"
                | "contains"
                | "items"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                _,
            ) => (keyword.as_str(), below(value, &at)?),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(items)) => {
                (keyword.as_str(), listed(items, &at, below)?)
            }
            (
                "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties",
                Value::Object(named),
            ) => {
                let each = named.iter().map(|(name, schema)| Ok((name.clone(), below(schema, &join(&at, name))?)));
                (keyword.as_str(), Value::Object(each.collect::<Result<_, DefinitionError>>()?))
            }
            (known, _) if is_keyword(known) => (known, value.clone()),
            (unknown, _) => {
                // An annotation by the rules of 2020-12, of which nothing is enforced.
                out.insert(format!("x-{}", unknown.trim_start_matches('$')), value.clone());
                continue;
            }
        };
        out.insert(name.to_owned(), value);
    }
    Ok(Value::Object(out))
}

fn listed(
    items: &[Value],
    at: &str,
    below: impl Fn(&Value, &str) -> Result<Value, DefinitionError>,
) -> Result<Value, DefinitionError> {
    let each = items.iter().enumerate().map(|(place, item)| below(item, &join(at, &place.to_string())));
    Ok(Value::Array(each.collect::<Result<_, _>>()?))
}

/// Until 2019-09 one keyword stood for two.
fn split_dependencies(
    value: &Value,
    at: &str,
    out: &mut Map<String, Value>,
    below: impl Fn(&Value, &str) -> Result<Value, DefinitionError>,
) -> Result<(), DefinitionError> {
    let (mut required, mut schemas) = (Map::new(), Map::new());
    for (name, dependency) in value.as_object().into_iter().flatten() {
        if dependency.is_array() {
            required.insert(name.clone(), dependency.clone());
        } else {
            schemas.insert(name.clone(), below(dependency, &join(at, name))?);
        }
    }
    for (keyword, members) in [("dependentRequired", required), ("dependentSchemas", schemas)] {
        if !members.is_empty() {
            out.insert(keyword.to_owned(), Value::Object(members));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    fn input(schema: Value) -> Value {
        let rewritten = of_input(&schema, "inputSchema").unwrap();
        Schema::compile(&rewritten).unwrap();
        rewritten
    }

    #[test]
    fn schemas_of_earlier_drafts_are_enforced_as_they_were_meant() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}], "additionalItems": false}},
            "dependencies": {"a": ["b"], "c": {"required": ["d"]}},
        });
        let schema = Schema::compile(&input(schema)).unwrap();
        for good in [json!({"pair": ["x", 1]}), json!({"a": 1, "b": 2}), json!({"c": 1, "d": 2})] {
            assert!(schema.check(&good).is_ok(), "{good}");
        }
        for bad in [json!({"pair": [1, 1]}), json!({"pair": ["x", 1, 2]}), json!({"a": 1}), json!({"c": 1})] {
            assert!(schema.check(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_only_describes_is_kept_as_a_remark() {
        let schema = input(json!({
            "title": "Args", "properties": {"file": {"type": "string", "format": "path", "markdownDescription": "**x**"}},
        }));
        let expected = json!({
            "type": "object", "title": "Args",
            "properties": {"file": {"type": "string", "x-format": "path", "x-markdownDescription": "**x**"}},
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn keywords_of_2020_12_stay_as_they_are() {
        let schema = json!({
            "$schema": DIALECT, "type": "object", "$defs": {"a": {"$anchor": "here", "type": "string"}},
            "properties": {"a": {"$ref": "#/$defs/a"}}, "additionalProperties": false,
            "if": {"required": ["a"]}, "then": {"required": ["b"]}, "allOf": [{"anyOf": [{"required": ["c"]}, true]}],
        });
        assert_eq!(input(schema.clone()), schema);
    }

    #[test]
    fn what_the_gate_cannot_enforce_is_refused() {
        for schema in [
            json!({"$schema": "http://json-schema.org/draft-04/schema#"}),
            json!({"type": "array"}),
            json!({"properties": {"a": {"$dynamicRef": "#node"}}}),
            json!({"properties": {"a": {"$id": "https://example.com/a"}}}),
            json!([]),
        ] {
            assert!(of_input(&schema, "inputSchema").is_err(), "{schema}");
        }
        for schema in [json!({"properties": {"a": {"$ref": "https://example.com/a"}}}), json!({"pattern": "(?=a)b"})] {
            let rewritten = of_input(&schema, "inputSchema").unwrap();
            assert!(Schema::compile(&rewritten).is_err(), "{schema}");
        }
    }
}
