//! Shapes of schemas.

use serde_json::json;

use super::*;

/// The shape of an argument with this schema, and whether it is always there.
fn of(schema: Value) -> (Shape, bool) {
    within(schema, json!({}))
}

fn within(schema: Value, definitions: Value) -> (Shape, bool) {
    let parameters = json!({"type": "object", "properties": {"it": schema}, "required": ["it"], "$defs": definitions});
    let Shape::Record(mut members) = Shape::of_parameters(Some(&parameters)) else { panic!("no record") };
    let member = members.remove("it").expect("the member");
    (member.shape, member.required)
}

fn record<const N: usize>(members: [(&str, Shape, bool); N]) -> Shape {
    let member = |(name, shape, required): (&str, Shape, bool)| (name.to_owned(), Member { shape, required });
    Shape::Record(members.into_iter().map(member).collect())
}

fn set(item: Shape) -> Shape {
    Shape::Set(Box::new(item))
}

#[test]
fn every_kind_of_schema_has_its_shape() {
    let text = json!({"type": "string"});
    let table = [
        (json!({"type": "string"}), Shape::Text),
        (json!({"type": "string", "enum": ["a", "b"]}), Shape::Text),
        (json!({"type": "string", "const": "a", "format": "date-time"}), Shape::Text),
        (json!({"type": "integer", "minimum": 1}), Shape::Long),
        (json!({"type": "number"}), Shape::Decimal),
        (json!({"type": ["integer", "number"]}), Shape::Decimal),
        (json!({"type": "boolean"}), Shape::Bool),
        (json!({"type": "array", "items": text}), set(Shape::Text)),
        (json!({"type": "array", "items": {}}), set(Shape::Json)),
        (json!({"type": "array"}), Shape::Json),
        (json!({"type": "array", "prefixItems": [text], "items": text}), Shape::Json),
        (json!({"type": "object"}), Shape::Json),
        (json!({"type": "object", "additionalProperties": text}), Shape::Json),
        (json!({"type": "object", "properties": {"a": text}}), record([("a", Shape::Text, false)])),
        (json!({"type": ["string", "integer"]}), Shape::Json),
        (json!({"allOf": [{"type": "number"}, {"type": "integer"}]}), Shape::Long),
        (json!({"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "a"}]}), Shape::Text),
        (json!({"oneOf": [text, {"type": "string", "maxLength": 3}]}), Shape::Text),
        (json!({"type": "string", "anyOf": [{"type": "integer"}, {"minLength": 1}]}), Shape::Text),
        (json!({"oneOf": [text, {"type": "integer"}]}), Shape::Json),
        (json!({"anyOf": [{"type": "object", "properties": {"a": text}}, text]}), Shape::Json),
        (json!({"type": "string", "$ref": "#/$defs/nowhere"}), Shape::Json),
        (json!({"$ref": "https://example.com/schema"}), Shape::Json),
    ];
    for (schema, shape) in table {
        assert_eq!(of(schema.clone()).0, shape, "{schema}");
    }
}

#[test]
fn what_may_be_null_is_never_required() {
    let table = [
        (json!({"type": "string"}), Shape::Text, true),
        (json!({"type": ["string", "null"]}), Shape::Text, false),
        (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), Shape::Long, false),
        (json!({"oneOf": [{"type": "null"}, {"type": "boolean"}]}), Shape::Bool, false),
        (json!({"allOf": [{"type": ["string", "null"]}, {"type": "string"}]}), Shape::Text, true),
        (json!({}), Shape::Json, false),
        (json!(true), Shape::Json, false),
        (json!({"enum": ["a", 1]}), Shape::Json, true),
        (json!({"enum": ["a", null]}), Shape::Json, false),
        (json!({"type": ["string", "integer"]}), Shape::Json, true),
        (json!({"type": ["string", "integer", "null"]}), Shape::Json, false),
        (json!({"type": ["string", "null"], "enum": ["a"]}), Shape::Text, true),
    ];
    for (schema, shape, required) in table {
        assert_eq!(of(schema.clone()), (shape, required), "{schema}");
    }
}

#[test]
fn all_of_several_objects_is_one_object() {
    let schema = json!({
        "allOf": [
            {"$ref": "#/$defs/named"},
            {"properties": {"size": {"type": "integer"}, "name": {"maxLength": 9}}, "required": ["size"]},
        ],
        "properties": {"open": {"type": "boolean"}}
    });
    let named = json!({"named": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}});
    let expected = record([("name", Shape::Text, true), ("open", Shape::Bool, false), ("size", Shape::Long, true)]);
    assert_eq!(within(schema, named), (expected, true));
}

#[test]
fn a_member_of_one_alternative_may_be_absent() {
    let object =
        |members: Value, required: Value| json!({"type": "object", "properties": members, "required": required});
    let schema = json!({"oneOf": [
        object(json!({"a": {"type": "string"}, "c": {"type": "string"}, "d": {"type": "boolean"}}), json!(["a", "c"])),
        object(json!({"b": {"type": "integer"}, "c": {"type": "string"}, "d": {"type": "string"}}), json!(["b", "c"])),
    ]});
    let members = [("a", Shape::Text, false), ("b", Shape::Long, false), ("c", Shape::Text, true)];
    let [a, b, c] = members;
    assert_eq!(of(schema).0, record([a, b, c, ("d", Shape::Json, false)]));
    let either = json!({
        "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}]
    });
    assert_eq!(of(either).0, record([("a", Shape::Text, false), ("b", Shape::Text, false)]));
}

#[test]
fn what_contains_itself_ends_as_text() {
    let node = json!({"node": {"type": "object", "properties": {
        "name": {"type": "string"},
        "next": {"$ref": "#/$defs/node"},
        "rest": {"type": "array", "items": {"$ref": "#/$defs/node"}}
    }}});
    let expected =
        record([("name", Shape::Text, false), ("next", Shape::Json, false), ("rest", set(Shape::Json), false)]);
    assert_eq!(within(json!({"$ref": "#/$defs/node"}), node).0, expected);
    assert_eq!(of(json!({"$ref": "#"})).0, Shape::Json);
    let same = json!({"a": {"type": "string", "$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}});
    assert_eq!(within(json!({"$ref": "#/$defs/a"}), same).0, Shape::Text);
}

#[test]
fn the_same_reference_beside_itself_is_no_cycle() {
    let place = json!({"place": {"type": "object", "properties": {"city": {"type": "string"}}}});
    let schema = json!({"type": "object", "properties": {
        "from": {"$ref": "#/$defs/place"}, "to": {"$ref": "#/$defs/place"}
    }});
    let place_shape = || record([("city", Shape::Text, false)]);
    assert_eq!(within(schema, place).0, record([("from", place_shape(), false), ("to", place_shape(), false)]));
}

#[test]
fn deep_schemas_end_as_text() {
    let nested =
        |depth: usize| (0..depth).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    let depth_of = |shape: &Shape| {
        let mut depth = 0;
        let mut shape = shape;
        while let Shape::Set(item) = shape {
            depth += 1;
            shape = item;
        }
        (depth, shape.clone())
    };
    assert_eq!(depth_of(&of(nested(7)).0), (7, Shape::Text));
    assert_eq!(depth_of(&of(nested(40)).0), (7, Shape::Json));
}

#[test]
fn large_schemas_keep_two_thousand_members() {
    let object = |count: usize, member: &Value| {
        let properties: serde_json::Map<String, Value> =
            (0..count).map(|number| (format!("m{number:05}"), member.clone())).collect();
        json!({"type": "object", "properties": properties})
    };
    let text = json!({"type": "string"});
    let Shape::Record(members) = Shape::of_parameters(Some(&object(5_000, &text))) else { panic!("no record") };
    assert_eq!(members.len(), 2_000);
    let Shape::Record(members) = Shape::of_parameters(Some(&object(1_000, &object(300, &text)))) else {
        panic!("no record")
    };
    let records = members.values().filter(|member| matches!(member.shape, Shape::Record(_))).count();
    assert_eq!((members.len(), records), (1_000, 3));
}

#[test]
fn alternatives_within_alternatives_take_a_bounded_time() {
    let group = json!({"anyOf": (0..10).map(|number| json!({"minLength": number})).collect::<Vec<_>>()});
    let (shape, _) = of(json!({"type": "string", "allOf": vec![group; 12]}));
    assert!(matches!(shape, Shape::Json | Shape::Text), "{shape:?}");
}

#[test]
fn arguments_are_always_a_record() {
    let empty = Shape::Record(BTreeMap::new());
    assert_eq!(Shape::of_parameters(None), empty);
    for schema in [json!({}), json!({"type": "object"}), json!(true), json!({"type": "string"}), json!([])] {
        assert_eq!(Shape::of_parameters(Some(&schema)), empty, "{schema}");
    }
    let forbidden = json!({"type": "object", "properties": {"a": false, "b": {"type": "null"}}});
    assert_eq!(Shape::of_parameters(Some(&forbidden)), empty);
}
