//! What a compact schema never contains, and that it refuses nothing that the full one takes.

use proptest::prelude::*;
use proptest::sample::select;

use super::super::{DescriptorFields, ToolDescriptor};
use super::*;
use crate::schema::Schema;

fn has_forbidden_key(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().any(|(name, value)| FORBIDDEN.contains(&name.as_str()) || has_forbidden_key(value))
        }
        Value::Array(items) => items.iter().any(has_forbidden_key),
        _ => false,
    }
}

#[test]
fn a_compact_descriptor_has_six_members_and_no_others() {
    let descriptor = ToolDescriptor::new(DescriptorFields {
        tool_id: ToolId::parse("mcp:fs.read").unwrap(),
        source: SourceKind::Mcp,
        title: Some(Line::parse("Read").unwrap()),
        description: Some("Reads a file".to_owned()),
        input_schema: Some(
            json!({"type": "object", "properties": {"path": {"$ref": "#/$defs/p"}}, "$defs": {"p": {"type": "string"}}}),
        ),
        output_schema: Some(json!({})),
        auth: None,
        egress: Some(super::super::Egress::None),
        approval: None,
        replay_policy: None,
        safety_tier: SafetyTier::Read,
        cost_hint: None,
        latency_hint: None,
    });
    let compact = json!(descriptor.unwrap().compact());
    let expected = json!({
        "toolId": "mcp:fs.read", "source": "mcp", "safetyTier": "read", "title": "Read", "description": "Reads a file",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}
    });
    assert_eq!(compact, expected);
    assert_eq!(Schema::compile(&ToolDescriptor::compact_schema()).unwrap().check(&compact), Ok(()));
}

#[test]
fn a_tool_without_a_schema_takes_any_object() {
    assert_eq!(compact_schema(&Value::Null), json!({"type": "object", "properties": {}}));
    assert_eq!(compact_schema(&json!({"oneOf": [{}]})), json!({"type": "object", "properties": {}}));
}

#[test]
fn references_are_written_out_and_parts_of_all_of_put_together() {
    let full = json!({
        "type": "object",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"to": {"$ref": "#/$defs/person", "description": "Who gets it"}},
        "required": ["to"],
        "allOf": [
            {"properties": {"amount": {"type": "integer"}, "to": {"required": ["name"]}}, "required": ["amount", "to"]},
            {"$ref": "#/$defs/noted"}
        ],
        "$defs": {
            "person": {"type": "object", "description": "A person", "properties": {"name": {"type": "string"}}},
            "noted": {"properties": {"note": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Note"}}}
        }
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "amount": {"type": "integer"},
            "note": {"title": "Note"},
            "to": {
                "type": "object", "description": "Who gets it", "properties": {"name": {"type": "string"}},
                "required": ["name"]
            }
        },
        "required": ["to", "amount"]
    });
    assert_eq!(compact_schema(&full), expected);
}

#[test]
fn a_schema_that_contains_itself_is_cut_where_it_begins_again() {
    let tree = json!({
        "type": "object", "properties": {"tree": {"$ref": "#/$defs/tree"}, "whole": {"$ref": "#"}},
        "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}
    });
    let expected = json!({"type": "object", "properties": {"tree": {"type": "array", "items": {}}, "whole": {}}});
    assert_eq!(compact_schema(&tree), expected);
}

#[test]
fn names_and_values_that_look_like_forbidden_keywords_are_left_out() {
    let full = json!({
        "type": "object",
        "properties": {
            "not": {"type": "string"},
            "filter": {"default": {"anyOf": []}, "enum": [{"not": 1}, 2], "examples": [[{"$ref": 1}]], "title": "F"}
        },
        "required": ["not"],
        "dependentRequired": {"not": ["filter"]},
        "additionalProperties": false
    });
    let expected = json!({"type": "object", "properties": {"filter": {"title": "F"}}, "required": ["not"]});
    assert_eq!(compact_schema(&full), expected, "still open for the parameter that has no place");
}

#[test]
fn a_rule_for_the_rest_is_kept_only_where_the_rest_is_known() {
    let cut = json!({
        "type": "object", "properties": {"b": {}}, "patternProperties": {"^a": {}}, "additionalProperties": false
    });
    assert_eq!(compact_schema(&cut), json!({"type": "object", "properties": {"b": {}}}));
    let parts = json!([
        {"prefixItems": [{"type": "string"}]},
        {"prefixItems": [{}, {"type": "null"}], "items": {"type": "integer"}}
    ]);
    let compact = compact_schema(&json!({"type": "object", "properties": {"list": {"allOf": parts}}}));
    assert_eq!(compact["properties"]["list"], json!({"prefixItems": [{"type": "string"}]}));
    let names: Map<String, Value> = (0..5_000).map(|number| (format!("parameter_{number}"), json!({}))).collect();
    let compact = compact_schema(&json!({"type": "object", "properties": names, "additionalProperties": false}));
    let kept = compact["properties"].as_object().unwrap().len();
    assert!((1_000..5_000).contains(&kept), "{kept}");
    assert_eq!(compact.get("additionalProperties"), None);
}

#[test]
fn a_schema_whose_references_multiply_stays_small() {
    let mut definitions = Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        let wide: Map<String, Value> = (0..10).map(|name| (format!("p{name}"), next.clone())).collect();
        definitions.insert(format!("d{level}"), json!({"properties": wide, "allOf": [next, next]}));
    }
    let long: Vec<String> = (0..2_000).map(|number| format!("value number {number}")).collect();
    definitions.insert("d40".to_owned(), json!({"enum": long}));
    let full = json!({"type": "object", "$ref": "#/$defs/d0", "$defs": definitions});
    let compact = compact_schema(&full);
    assert!(compact.to_string().len() < 2 * ROOM);
    assert!(!has_forbidden_key(&compact));
    assert_eq!(compact, compact_schema(&full));
}

#[test]
fn a_long_chain_of_references_is_followed_only_so_far() {
    let link = |level: usize| (format!("d{level}"), json!({"items": {"$ref": format!("#/$defs/d{}", level + 1)}}));
    let definitions: Map<String, Value> = (0..9_000).map(link).collect();
    let full = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    assert!(compact_schema(&full).to_string().len() < 2_000);
}

const NAMES: [&str; 4] = ["a", "b", "not", "allOf"];

fn leaf() -> impl Strategy<Value = Value> {
    let reference = select(vec!["#/$defs/a", "#/$defs/b", "#"]).prop_map(|to| json!({"$ref": to}));
    prop_oneof![
        2 => select(vec!["integer", "string", "object", "array", "null"]).prop_map(|kind| json!({"type": kind})),
        1 => Just(json!({"enum": [1, "x", {"not": 1}]})),
        1 => Just(json!({"minimum": 2, "maxLength": 1, "minProperties": 1, "maxItems": 1})),
        1 => any::<bool>().prop_map(|open| json!(open)),
        2 => reference,
    ]
}

/// Any nesting of the keywords that bear on each other.
fn schema() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 40, 4, |inner| {
        let list = || prop::collection::vec(inner.clone(), 1..3);
        let named = || prop::collection::btree_map(select(NAMES.to_vec()), inner.clone(), 0..3);
        let option = || prop::option::of(inner.clone());
        let required = prop::collection::btree_set(select(NAMES.to_vec()), 0..2);
        prop_oneof![
            4 => (named(), option(), required).prop_map(|(properties, others, required)| {
                let mut schema = json!({"properties": properties, "required": required});
                if let Some(others) = others {
                    schema["additionalProperties"] = others;
                }
                schema
            }),
            2 => (list(), option()).prop_map(|(first, items)| {
                let mut schema = json!({"prefixItems": first});
                if let Some(items) = items {
                    schema["items"] = items;
                }
                schema
            }),
            1 => inner.clone().prop_map(|items| json!({"items": items})),
            3 => (select(vec!["allOf", "anyOf", "oneOf"]), list()).prop_map(|(keyword, parts)| json!({keyword: parts})),
            1 => inner.clone().prop_map(|other| json!({"not": other})),
            1 => named().prop_map(|parts| json!({"dependentSchemas": parts})),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(when, then, other)| json!({"if": when, "then": then, "else": other})),
            1 => (inner.clone(), inner.clone())
                .prop_map(|(part, others)| json!({"patternProperties": {"^a": part}, "additionalProperties": others})),
            1 => (inner.clone(), inner.clone())
                .prop_map(|(part, others)| json!({"allOf": [part], "unevaluatedProperties": others})),
            1 => inner.clone().prop_map(|part| json!({"contains": part, "maxContains": 1})),
            1 => (inner.clone(), named()).prop_map(|(part, properties)| {
                json!({"$ref": "#/$defs/a", "allOf": [part], "properties": properties})
            }),
        ]
    })
}

fn document() -> impl Strategy<Value = Value> {
    (schema(), schema(), schema()).prop_map(|(mut top, a, b)| {
        if !top.is_object() {
            top = json!({});
        }
        top["type"] = json!("object");
        top["$defs"] = json!({"a": a, "b": b});
        top
    })
}

fn instance() -> impl Strategy<Value = Value> {
    let leaf = select(vec![json!(1), json!(2), json!("x"), json!("long"), json!(null), json!({"not": 1})]);
    let value = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::btree_map(select(NAMES.to_vec()), inner.clone(), 0..4).prop_map(|members| json!(members)),
            prop::collection::vec(inner, 0..3).prop_map(|items| json!(items)),
        ]
    });
    prop::collection::btree_map(select(NAMES.to_vec()), value, 0..4).prop_map(|members| json!(members))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_compact_schema_is_an_object_without_any_forbidden_key(full in document()) {
        let compact = compact_schema(&full);
        prop_assert!(!has_forbidden_key(&compact), "{compact}");
        prop_assert_eq!(&compact["type"], "object");
        prop_assert!(compact["properties"].is_object());
        prop_assert!(Schema::compile(&full).is_err() || Schema::compile(&compact).is_ok());
        prop_assert_eq!(compact_schema(&full), compact);
    }

    #[test]
    fn a_compact_schema_refuses_nothing_that_the_full_one_takes(
        full in document(), instances in prop::collection::vec(instance(), 8)
    ) {
        let compact = compact_schema(&full);
        if let (Ok(strict), Ok(hint)) = (Schema::compile(&full), Schema::compile(&compact)) {
            for instance in instances.iter().filter(|instance| strict.check(instance).is_ok()) {
                prop_assert_eq!(hint.check(instance), Ok(()), "{} by {} which was {}", instance, compact, full);
            }
        }
    }
}
