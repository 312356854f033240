//! No tool takes more than its document allows.

use super::*;

/// A tool of one operation in a document of this version.
fn of_version(version: &str, operation: Value, schemas: Value) -> Imported {
    let mut operation = operation;
    operation["operationId"] = json!("tool");
    let imported = imported(&json!({
        "openapi": version, "info": {"title": "T", "version": "1"}, "servers": [{"url": "https://t.example"}],
        "paths": {"/a": {"post": operation}}, "components": {"schemas": schemas},
    }));
    assert_sound(&imported);
    imported
}

fn of_body(version: &str, schema: Value, schemas: Value) -> Imported {
    let body = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    of_version(version, json!({"requestBody": body}), schemas)
}

#[test]
fn a_read_only_member_is_no_parameter_at_any_depth() {
    let schemas = json!({
        "Id": {"type": "string", "readOnly": true},
        "User": {"type": "object", "required": ["name", "is_admin"], "properties": {
            "name": {"type": "string"}, "is_admin": {"type": "boolean", "readOnly": true},
            "id": {"$ref": "#/components/schemas/Id"},
            "owner": {"allOf": [{"type": "string"}, {"readOnly": true}]},
            "profile": {"type": "object", "properties": {"verified": {"readOnly": true}, "bio": {"type": "string"}}}
        }},
        "Open": {"allOf": [{"$ref": "#/components/schemas/User"}, {"additionalProperties": true, "required": ["id"]}]}
    });
    for (name, also) in [("User", false), ("Open", true)] {
        let imported = of_body("3.0.3", json!({"$ref": format!("#/components/schemas/{name}")}), schemas.clone());
        let tool = tool(&imported, "tool");
        assert!(fits(tool, &json!({"name": "ann", "profile": {"bio": "x"}})));
        assert_eq!(fits(tool, &json!({"name": "ann", "other": 1})), also);
        for member in [
            json!({"is_admin": true}),
            json!({"id": "1"}),
            json!({"owner": "x"}),
            json!({"profile": {"verified": true}}),
            json!({"Is_Admin": true}),
        ] {
            let mut given = member;
            given["name"] = json!("ann");
            assert!(!fits(tool, &given), "{name}: {given}");
        }
        assert_found(&imported, Kind::ReadOnly, "/components/schemas/User/properties/is_admin");
        assert_found(&imported, Kind::ReadOnly, "/components/schemas/User/properties/profile/properties/verified");
    }
}

#[test]
fn a_body_of_several_parts_is_closed_if_one_of_them_is_and_that_is_told() {
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
    let open = json!({"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": true});
    for parts in [json!([closed, open]), json!([open, closed])] {
        let imported = of_body("3.0.3", json!({"allOf": parts}), json!({}));
        let tool = tool(&imported, "tool");
        assert!(fits(tool, &json!({"a": "x", "b": "y"})));
        assert!(!fits(tool, &json!({"a": "x", "admin": true})));
        assert_eq!(imported.findings.count(Kind::BodyClosed), 1);
    }
    let own = json!({"additionalProperties": false, "properties": {"c": {}}, "anyOf": [open]});
    assert!(!fits(tool(&of_body("3.0.3", own, json!({})), "tool"), &json!({"admin": true})));
    let both = json!({"allOf": [
        {"additionalProperties": {"type": "string"}}, {"additionalProperties": {"maxLength": 3}}
    ]});
    let imported = of_body("3.0.3", both, json!({}));
    assert!(fits(tool(&imported, "tool"), &json!({"x": "abc"})));
    assert!(!fits(tool(&imported, "tool"), &json!({"x": "abcd"})) && !fits(tool(&imported, "tool"), &json!({"x": 1})));
}

#[test]
fn keywords_beside_a_reference_count_from_3_1_on() {
    let schemas = json!({"Base": {"type": "object", "properties": {"a": {"type": "string"}}}});
    let schema = json!({
        "$ref": "#/components/schemas/Base", "required": ["a"], "properties": {"a": {"maxLength": 3}, "b": {}},
        "additionalProperties": false
    });
    let imported = of_body("3.1.0", schema.clone(), schemas.clone());
    assert_eq!(imported.findings.count(Kind::ReferenceSibling), 0);
    let newer = tool(&imported, "tool");
    assert!(fits(newer, &json!({"a": "abc", "b": 1})));
    assert!(
        !fits(newer, &json!({"a": "abcd"})) && !fits(newer, &json!({})) && !fits(newer, &json!({"a": "x", "c": 1}))
    );
    // In 3.0 they mean nothing, and that is told.
    let imported = of_body("3.0.3", schema, schemas);
    assert_eq!(imported.findings.count(Kind::ReferenceSibling), 3);
    assert!(fits(tool(&imported, "tool"), &json!({"a": "abcd"})));
}

#[test]
fn a_list_in_one_text_keeps_the_limits_of_its_items() {
    for (style, explode, sent) in
        [("form", false, "1%2C2"), ("spaceDelimited", false, "1+2"), ("pipeDelimited", false, "1%7C2")]
    {
        let schema = json!({"type": "array", "maxItems": 2, "items": {"type": "integer", "maximum": 500}});
        let parameter = json!({"name": "ids", "in": "query", "style": style, "explode": explode, "schema": schema});
        let imported = of_version("3.0.3", json!({"parameters": [parameter]}), json!({}));
        let tool = tool(&imported, "tool");
        assert_eq!(render(tool, json!({"ids": [1, 2]})).url.query(), Some(format!("ids={sent}").as_str()));
        for invalid in [json!([501]), json!([1, 2, 3]), json!("1,501"), json!(["1"])] {
            assert!(!fits(tool, &json!({"ids": invalid})), "{style}: {invalid}");
        }
        assert_eq!(imported.findings.count(Kind::ParameterAsText), 0);
    }
}

#[test]
fn placeholders_that_would_become_one_cost_the_operation() {
    let document = json!({
        "openapi": "3.0.3", "info": {"title": "T", "version": "1"},
        "paths": {"/{user id}/{user_id}": {"get": {"operationId": "tool"}}},
    });
    let imported = imported(&document);
    assert_eq!((imported.definition.tools.len(), imported.findings.count(Kind::Operation)), (0, 1));
}
