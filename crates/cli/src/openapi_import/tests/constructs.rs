//! Construct by construct: what the tool takes, and what request comes of it.

use super::*;

fn parameter(parameter: Value) -> Imported {
    of_operation("get", json!({"parameters": [parameter]}), json!({}))
}

fn body(schema: Value) -> Imported {
    let body = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    of_operation("post", json!({"requestBody": body}), json!({}))
}

/// The schema of one parameter in the body.
fn converted(version: &str, schema: Value) -> Value {
    let body = json!({"required": true, "content": {"application/json": {"schema":
        {"type": "object", "properties": {"value": schema}}}}});
    let document = json!({
        "openapi": version, "info": {"title": "T", "version": "1"},
        "paths": {"/a": {"post": {"operationId": "tool", "requestBody": body}}},
        "components": {"schemas": {"Name": {"type": "string"}}},
    });
    let imported = imported(&document);
    assert_sound(&imported);
    tool(&imported, "tool").parameters.as_ref().unwrap()["properties"]["value"].clone()
}

#[test]
fn schemas_of_the_older_dialect_say_the_same_in_the_newer_one() {
    for (given, expected) in [
        (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
        (json!({"type": "string", "nullable": false}), json!({"type": "string"})),
        (
            json!({"type": "string", "enum": ["a"], "nullable": true}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
        ),
        (
            json!({"nullable": true, "description": "d", "allOf": [{"$ref": "#/components/schemas/Name"}]}),
            json!({"description": "d", "anyOf": [{"allOf": [{"$ref": "#/$defs/Name"}]}, {"type": "null"}]}),
        ),
        (
            json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
            json!({"type": "integer", "exclusiveMinimum": 1}),
        ),
        (json!({"type": "integer", "maximum": 1, "exclusiveMaximum": false}), json!({"type": "integer", "maximum": 1})),
        (json!({"type": "string", "example": "a"}), json!({"type": "string", "examples": ["a"]})),
        (json!({"type": "string", "format": "byte"}), json!({"type": "string", "x-format": "byte"})),
        (json!({"type": "string", "format": "uuid"}), json!({"type": "string", "format": "uuid"})),
        (json!({"type": "string", "pattern": "(a)\\1"}), json!({"type": "string"})),
        (json!({"$ref": "#/components/schemas/Name", "description": "d"}), json!({"$ref": "#/$defs/Name"})),
        (json!({"type": "object", "discriminator": {"propertyName": "a"}, "xml": {}}), json!({"type": "object"})),
    ] {
        assert_eq!(converted("3.0.1", given.clone()), expected, "{given}");
    }
}

#[test]
fn schemas_of_the_newer_dialect_stay_as_they_are() {
    for same in [
        json!({"type": ["string", "null"], "examples": ["a"]}),
        json!({"exclusiveMinimum": 1}),
        json!({"$ref": "#/$defs/Name", "description": "d"}),
        json!({"if": {"const": 1}, "then": {"minimum": 0}, "else": {"type": "string"}}),
        json!({"type": "array", "prefixItems": [{"type": "string"}], "items": false}),
        json!(true),
    ] {
        let mut given = same.clone();
        if given.get("$ref").is_some() {
            given["$ref"] = json!("#/components/schemas/Name");
        }
        assert_eq!(converted("3.1.0", given), same);
    }
    assert_eq!(converted("3.1.0", json!({"then": {}, "$anchor": "a", "minContains": 1})), json!({}));
}

#[test]
fn a_schema_that_refers_to_itself_is_kept_with_its_definitions() {
    let node = json!({"type": "object", "properties": {"below": {"$ref": "#/components/schemas/Node"}}});
    let components = json!({"schemas": {"Node": node}});
    let content = json!({"application/json": {"schema": {"type": "object", "required": ["node"],
        "properties": {"node": {"$ref": "#/components/schemas/Node"}}}}});
    let responses = json!({"200": {"description": "a", "content": {"application/json": {
        "schema": {"$ref": "#/components/schemas/Node"}}}}});
    let operation = json!({"requestBody": {"required": true, "content": content}, "responses": responses});
    let imported = of_operation("post", operation, components);
    assert_sound(&imported);
    let tool = tool(&imported, "tool");
    assert!(fits(tool, &json!({"node": {"below": {"below": {}}}})));
    assert!(!fits(tool, &json!({"node": {"below": {"below": 1}}})));
    assert_eq!(tool.returns.as_ref().unwrap()["$defs"]["Node"]["properties"]["below"]["$ref"], "#/$defs/Node");
}

#[test]
fn query_parameters_become_what_the_service_reads() {
    let imported = imported(&shop());
    let list = tool(&imported, "orders.list");
    let sent = render(
        list,
        json!({"limit": 5, "ids": ["a", "b"], "tags": ["x", "y"], "created_gte": 3, "expand": ["p", "q"],
            "filter": "{}", "X-Trace": "t"}),
    );
    assert_eq!(
        sent.url.query().unwrap(),
        "created%5Bgte%5D=3&expand%5B%5D=p&expand%5B%5D=q&filter=%7B%7D&ids=a%2Cb&limit=5&tags=x&tags=y"
    );
    assert_eq!(sent.headers, [("X-Trace".to_owned(), "t".to_owned())]);
    assert_eq!(render(list, json!({"created": 7})).url.query().unwrap(), "created=7");
    assert!(!fits(list, &json!({"limit": 0})), "the bound is exclusive");
    assert!(!fits(list, &json!({"unknown": 1})) && !fits(list, &json!({"ids": "a"})));
}

#[test]
fn paths_and_forms_become_what_the_service_reads() {
    let imported = imported(&shop());
    let (_, put) = imported
        .definition
        .tools
        .iter()
        .find(|(name, tool)| name.as_str().starts_with("note.") && tool.http.as_ref().unwrap().method.as_str() == "PUT")
        .unwrap();
    let sent = render(
        put,
        json!({"order_id": ["1", "2"], "note": "n", "query_note": "q", "body_note": "b", "text": "t", "parts": ["p"]}),
    );
    assert_eq!(sent.url.as_str(), "https://t.example/orders/1%2C2/notes/n?note=q");
    assert_eq!(String::from_utf8(sent.body.unwrap().bytes).unwrap(), "note=b&parts%5B0%5D=p&text=t");
    assert!(!fits(put, &json!({"order_id": ["1"], "note": "n"})), "the form needs its text");
    let labels = tool(&imported, "labels");
    let sent = render(labels, json!({"kind": "a", "ending": "b", "name": "n", "colour": "red", "more": "m"}));
    assert_eq!(sent.url.path(), "/labels/a.b");
    assert_eq!(String::from_utf8(sent.body.unwrap().bytes).unwrap(), r#"{"colour":"red","more":"m","name":"n"}"#);
    assert!(!fits(labels, &json!({"kind": "a", "ending": "b", "name": "n", "more": 1})));
}

#[test]
fn a_required_parameter_that_cannot_be_sent_costs_the_operation() {
    for given in [
        json!({"name": "a", "in": "cookie", "required": true, "schema": {"type": "string"}}),
        json!({"name": "Transfer-Encoding", "in": "header", "required": true, "schema": {"type": "string"}}),
        json!({"name": "a", "in": "query", "required": true, "style": "odd", "schema": {"type": "string"}}),
        json!({"name": "a", "in": "query", "required": true, "style": "deepObject", "schema": {"type": "object"}}),
    ] {
        let refused = parameter(given.clone());
        assert_eq!((refused.definition.tools.len(), refused.findings.count(Kind::Operation)), (0, 1), "{given}");
        let mut optional = given.clone();
        optional["required"] = json!(false);
        let imported = parameter(optional);
        assert_eq!((imported.definition.tools.len(), imported.findings.count(Kind::Parameter)), (1, 1), "{given}");
    }
}

#[test]
fn alternative_bodies_keep_what_each_of_them_requires() {
    let imported = body(json!({"oneOf": [
        {"type": "object", "required": ["a", "c"], "properties": {"a": {"type": "string"}, "c": {"type": "string"}}},
        {"type": "object", "required": ["b", "c"], "properties": {"b": {"type": "string"}, "c": {"type": "integer"}}},
        {"type": "string"},
    ]}));
    assert_sound(&imported);
    let tool = tool(&imported, "tool");
    for (given, expected) in [
        (json!({"a": "x", "c": "y"}), true),
        (json!({"b": "x", "c": 1}), true),
        (json!({"c": 1}), false),
        (json!({"a": "x"}), false),
        (json!({"a": "x", "c": true}), false),
        (json!({"a": "x", "c": "y", "d": 1}), false),
    ] {
        assert_eq!(fits(tool, &given), expected, "{given}");
    }
    assert_eq!(imported.findings.count(Kind::BodyAlternative), 1);
    assert_eq!(imported.findings.count(Kind::BodyAlternatives), 1);
}

#[test]
fn a_body_is_as_open_as_the_document_says() {
    let named = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut open = named.clone();
    open["additionalProperties"] = json!({"type": "integer"});
    for (schema, given, expected) in [
        (named.clone(), json!({"b": 1}), false),
        (open.clone(), json!({"b": 1}), true),
        (open, json!({"b": "x"}), false),
        (json!({"type": "object"}), json!({"b": 1}), true),
        (json!({"type": "object", "additionalProperties": false}), json!({"b": 1}), false),
        (json!({}), json!({"b": 1}), true),
    ] {
        let imported = body(schema.clone());
        assert_eq!(fits(tool(&imported, "tool"), &given), expected, "{schema}");
    }
    // The rest goes to the body also where the method alone would put it into the query.
    let body = json!({"content": {"application/json": {"schema": {"type": "object"}}}});
    let imported = of_operation("delete", json!({"requestBody": body}), json!({}));
    let sent = render(tool(&imported, "tool"), json!({"b": 1}));
    assert_eq!((sent.url.query(), sent.body.unwrap().bytes), (None, b"{\"b\":1}".to_vec()));
}

#[test]
fn an_answer_that_looks_like_the_short_form_is_read_as_a_schema() {
    for schema in [
        json!({"type": "string", "description": "object"}),
        json!({"additionalProperties": {"type": "string"}}),
        json!({"properties": {"type": {"type": "string"}}}),
    ] {
        let responses = json!({"200": {"description": "", "content": {"application/json": {"schema": schema}}}});
        let imported = of_operation("get", json!({"responses": responses}), json!({}));
        assert_sound(&imported);
        let returns = tool(&imported, "tool").returns.clone().unwrap();
        for (keyword, value) in schema.as_object().unwrap() {
            assert_eq!(&returns[keyword], value, "{schema}");
        }
    }
}

#[test]
fn a_large_answer_is_left_out_and_told() {
    let long = "x".repeat(30_000);
    let schema = json!({"type": "object", "description": long});
    let responses = json!({"200": {"description": "a", "content": {"application/json": {"schema": schema}}}});
    let imported = of_operation("get", json!({"responses": responses}), json!({}));
    assert_eq!(tool(&imported, "tool").returns, None);
    assert_eq!(imported.findings.count(Kind::ResponseSchema), 1);
}
