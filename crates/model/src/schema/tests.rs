//! What a schema refuses, and how it says so.

use serde_json::{Value, json};

use super::*;

fn schema() -> Schema {
    Schema::compile(&json!({
        "type": "object",
        "properties": {
            "amount": {"type": "integer", "minimum": 1, "maximum": 500},
            "currency": {"enum": ["usd", "eur"]},
            "customer": {
                "type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}, "required": ["name"],
                "additionalProperties": false
            },
            "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}},
            "when": {"type": "string", "format": "date-time"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}
        },
        "required": ["amount"],
        "additionalProperties": false
    }))
    .unwrap()
}

fn violation(instance: &Value) -> (String, String, String) {
    let SchemaViolation { path, rule, reason } = schema().check(instance).unwrap_err();
    (path, rule, reason)
}

fn refusal(document: &Value) -> String {
    Schema::compile(document).unwrap_err().to_string()
}

#[test]
fn a_violation_names_the_parameter_the_rule_and_the_remedy() {
    let known = "is unknown; use amount, currency, customer, note, tags, when";
    let cases = [
        (json!({}), ("amount", "required", "is missing")),
        (json!({"amount": "x"}), ("amount", "type", "must be an integer")),
        (json!({"amount": 1.5}), ("amount", "type", "must be an integer")),
        (json!({"amount": 0}), ("amount", "minimum", "must be at least 1")),
        (json!({"amount": 501}), ("amount", "maximum", "must be at most 500")),
        (json!({"amount": 1, "currency": "gbp"}), ("currency", "enum", r#"must be one of "usd", "eur""#)),
        (json!({"amount": 1, "customer": {}}), ("customer.name", "required", "is missing")),
        (
            json!({"amount": 1, "customer": {"name": "Ann", "age": 3}}),
            ("customer.age", "additionalProperties", "is unknown; use name"),
        ),
        (
            json!({"amount": 1, "customer": {"name": "Anna"}}),
            ("customer.name", "maxLength", "must have at most 3 characters"),
        ),
        (json!({"amount": 1, "tags": ["a", "B"]}), ("tags.1", "pattern", "must match the pattern ^[a-z]+$")),
        (json!({"amount": 1, "when": "soon"}), ("when", "format", "must be a string in the format date-time")),
        (
            json!({"amount": 1, "note": 5}),
            ("note", "anyOf", "matches none of the alternatives: must be a string; or must be null"),
        ),
        (json!({"amount": 1, "amont": 2}), ("amont", "additionalProperties", known)),
        (json!([]), ("", "type", "must be an object")),
    ];
    for (instance, (path, rule, reason)) in cases {
        let expected = (path.to_owned(), rule.to_owned(), reason.to_owned());
        assert_eq!(violation(&instance), expected, "{instance}");
    }
    let whole = json!({"amount": 1, "currency": "usd", "customer": {"name": "Ann"}, "tags": ["a"], "note": null});
    assert_eq!(schema().check(&whole), Ok(()));
}

#[test]
fn no_violation_repeats_the_value_that_was_sent() {
    let secret = "sk_live_51H8";
    let document = json!({
        "type": "object",
        "properties": {
            "a": {"type": "integer"}, "b": {"pattern": "^x$"}, "c": {"const": 1}, "d": {"enum": [1]},
            "e": {"format": "email"}, "f": {"maxLength": 1}, "g": {"oneOf": [{"type": "null"}, {"minLength": 99}]},
            "h": {"not": {"type": "string"}},
            "i": {"type": "array", "uniqueItems": true}, "j": {"contains": {"type": "null"}}, "k": false,
            "l": {"items": {"type": "integer"}}, "m": {"if": {"type": "string"}, "then": {"maxLength": 2}},
            "n": {"prefixItems": [true], "items": false}, "o": {"unevaluatedItems": false},
            "p": {"propertyNames": {"maxLength": 1}}, "q": {"dependentRequired": {"x": ["y"]}}
        }
    });
    let schema = Schema::compile(&document).unwrap();
    for name in "abcdefghijklmnopq".chars() {
        let value = match name {
            'i' | 'j' | 'l' | 'n' | 'o' => json!([secret, secret]),
            'p' => json!({"name": secret}),
            'q' => json!({"x": secret}),
            _ => json!(secret),
        };
        let violation = schema.check(&json!({name.to_string(): value})).unwrap_err();
        assert!(!violation.to_string().contains(secret), "{violation}");
        assert!(violation.path.starts_with(name), "{violation}");
    }
}

#[test]
fn long_names_are_cut_in_what_is_shown() {
    let (path, _, reason) = violation(&json!({"amount": 1, "x".repeat(5000): 2}));
    assert!(path.len() < 100 && reason.len() < 200);
}

#[test]
fn a_reference_stays_inside_the_schema() {
    let outside = [
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json",
        "#anchor",
        "urn:a:b",
        "//example.com/a",
        "",
        "json-schema:///other",
    ];
    for target in outside {
        assert!(refusal(&json!({"$ref": target})).starts_with("`$ref` must refer to a part of the schema"), "{target}");
        let deep = json!({"properties": {"a": {"items": {"allOf": [{"$ref": target}]}}}});
        assert!(
            refusal(&deep).starts_with("`properties.a.items.allOf.0.$ref` must refer to a part of the schema"),
            "{target}"
        );
    }
    assert!(refusal(&json!({"$ref": "#/$defs/none"})).contains("does not exist"));
    let inside = json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "integer"}}});
    let schema = Schema::compile(&inside).unwrap();
    assert_eq!(schema.check(&json!({"a": "x"})).unwrap_err().path, "a");
    let data = json!({"const": {"$ref": "https://example.com"}});
    assert!(Schema::compile(&data).is_ok());
}

#[test]
fn what_would_be_ignored_is_refused() {
    let cases = [
        (json!({"$id": "https://example.com/a"}), "`$id` is not supported"),
        (json!({"$dynamicAnchor": "a"}), "`$dynamicAnchor` is not supported"),
        (json!({"$defs": {"b": {"$anchor": "a"}}, "$ref": "#a"}), "`$ref` must refer to a part of the schema"),
        (json!({"$dynamicRef": "#a"}), "`$dynamicRef` is not supported"),
        (json!({"$schema": "http://json-schema.org/draft-07/schema#"}), "`$schema` must be"),
        (
            json!({"properties": {"a": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}}),
            "`properties.a.$schema` must be",
        ),
        (json!({"nullable": true}), "`nullable` is not a keyword"),
        (json!({"maxmum": 3}), "`maxmum` is not a supported keyword"),
        (json!({"format": "phone"}), "`format` is not a supported format"),
        (json!({"format": "regex"}), "`format` is not a supported format"),
        (json!({"properties": {"a": {"required": true}}}), "`properties.a.required` must be a list"),
        (json!({"then": {}}), "`` has then without if"),
        (json!({"properties": {"a": 5}}), "`properties.a` must be a schema"),
        (json!({"type": "int"}), "`type` matches none of the alternatives"),
        (json!({"minLength": -1}), "`minLength` must be at least 0"),
        (json!(5), "`` must be a schema"),
    ];
    for (document, expected) in cases {
        let error = refusal(&document);
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(Schema::compile(&json!({"x-note": {"anything": 1}, "title": "t", "examples": [1]})).is_ok());
}

#[test]
fn patterns_run_in_linear_time_or_not_at_all() {
    for pattern in ["(?=a)b", r"(a)\1", "(?<!a)b", "["] {
        assert!(Schema::compile(&json!({"pattern": pattern})).is_err(), "{pattern}");
    }
    let error = Schema::compile(&json!({"pattern": "(a{1000}){1000}"})).unwrap_err().to_string();
    assert!(error.contains("too large") && !error.contains("look-around"), "{error}");
    let error = Schema::compile(&json!({"pattern": "(?=a)b"})).unwrap_err().to_string();
    assert!(error.contains("look-around"), "{error}");
    let schema = Schema::compile(&json!({"pattern": "^(a+)+$"})).unwrap();
    assert!(schema.check(&json!("a".repeat(50_000) + "b")).is_err());
}

#[test]
fn a_reference_that_never_ends_is_refused() {
    let loops = [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        json!({"properties": {"a": {"if": {"$ref": "#/properties/a"}}}}),
        json!({"$defs": {"a b": {"allOf": [{"$ref": "#/$defs/a%20b"}]}}}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
    ];
    for document in loops {
        assert!(refusal(&document).contains("never end"), "{document}");
    }
    let properties = json!({"next": {"$ref": "#"}, "items": {"items": {"$ref": "#"}}});
    let schema = Schema::compile(&json!({"properties": properties, "additionalProperties": false})).unwrap();
    assert_eq!(schema.check(&json!({"next": {"next": {"items": [{}, {}]}}})), Ok(()));
    let violation = schema.check(&json!({"next": {"next": {"x": 1}}})).unwrap_err();
    assert_eq!(violation.to_string(), "parameter `next.next.x` is unknown; use items, next");
}

#[test]
fn a_reference_leads_to_a_schema_and_not_into_data() {
    let hidden = json!({"properties": {"p": {"allOf": [{"$ref": "#/x-a/properties/p"}], "unknown": 1}}});
    for document in [
        json!({"x-a": hidden, "$ref": "#/x-a"}),
        json!({"const": {"a": {}}, "properties": {"b": {"$ref": "#/const/a"}}}),
        json!({"properties": {"b": {"$ref": "#/properties"}}}),
    ] {
        assert!(refusal(&document).contains("is not a schema"), "{document}");
    }
}

#[test]
fn references_that_fan_out_without_bound_are_refused() {
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"allOf": [next.clone(), next]}));
    }
    definitions.insert("d40".to_owned(), json!({"type": "object"}));
    assert!(refusal(&json!({"$ref": "#/$defs/d0", "$defs": definitions})).contains("too many schemas"));
}

#[test]
fn a_schema_has_limits_of_depth_and_size() {
    let deep = (0..100).fold(json!({}), |inner, _| json!({"items": inner}));
    assert!(refusal(&deep).contains("too deep"));
    let wide: serde_json::Map<String, Value> = (0..10_001).map(|number| (number.to_string(), json!({}))).collect();
    assert!(refusal(&json!({"properties": wide})).contains("too many parts"));
}

#[test]
fn another_spelling_of_a_declared_name_is_refused_where_the_schema_is_open() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {
            "amount": {"maximum": 500},
            "owner": {"$ref": "#/$defs/owner"},
            "lines": {"items": {"allOf": [{"properties": {"price": {"maximum": 5}}}]}},
            "x-filter": {}, "xFilter": {}
        },
        "$defs": {"owner": {"anyOf": [{"properties": {"admin": false}}, {"type": "null"}]}}
    }))
    .unwrap();
    for (instance, path, declared) in [
        (json!({"Amount": 501}), "Amount", "amount"),
        (json!({"amount[]": 501}), "amount[]", "amount"),
        (json!({"amount": 1, "amount[0]": 501}), "amount[0]", "amount"),
        (json!({"owner": {"admin[x]": true}}), "owner.admin[x]", "admin"),
        (json!({"lines": [{"price": 1}, {"Price": 9}]}), "lines.1.Price", "price"),
    ] {
        let SchemaViolation { path: at, rule, reason } = schema.check_parameters(&instance).unwrap_err();
        assert_eq!((at.as_str(), rule.as_str()), (path, "spelling"));
        assert!(reason.starts_with(&format!("may be read as `{declared}`")), "{reason}");
    }
    assert_eq!(
        schema.check_parameters(&json!({"amount": 1, "x-filter": 1, "xFilter": 2, "other": {"Amount": 1}})),
        Ok(())
    );
}

#[test]
fn large_integers_are_compared_exactly() {
    let (one, other) = (9_007_199_254_740_992_u64, 9_007_199_254_740_993_u64);
    for (schema, fits, misfits) in [
        (json!({"const": other}), other, one),
        (json!({"enum": [1, other]}), other, one),
        (json!({"maximum": one}), one, other),
        (json!({"minimum": other}), other, one),
        (json!({"exclusiveMaximum": other}), one, other),
        (json!({"not": {"const": one}}), other, one),
        (json!({"multipleOf": 2}), one, other),
    ] {
        let compiled = Schema::compile(&schema).unwrap();
        assert_eq!(compiled.check(&json!(fits)), Ok(()), "{schema}");
        assert!(compiled.check(&json!(misfits)).is_err(), "{schema}");
    }
    // No divisor of this size is exact where numbers are checked.
    assert!(refusal(&json!({"multipleOf": other})).contains("must be at most 9007199254740992"));
}
