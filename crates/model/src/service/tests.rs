//! Reading and writing definitions.

use serde_json::{Map, Value, json};

use super::*;
use crate::schema::Schema;

/// The example of RFC-0014 §8.1.
fn example() -> Value {
    json!({
        "service": "stripe",
        "version": "2024-01",
        "tools": {
            "charges.create": {
                "description": "Create a new charge",
                "scope": "charges.create",
                "parameters": {
                    "amount": { "type": "integer", "required": true },
                    "currency": { "type": "string", "required": true },
                    "customer": { "type": "string", "required": false },
                    "description": { "type": "string", "required": false }
                },
                "returns": { "id": "string", "amount": "integer", "status": "string" },
                "idempotent": true,
                "estimated_cost_usd": 0.02
            },
            "charges.read": {
                "description": "Retrieve a charge by ID",
                "scope": "charges.read",
                "parameters": { "charge_id": { "type": "string", "required": true } },
                "returns": { "id": "string", "amount": "integer", "status": "string" },
                "idempotent": true,
                "estimated_cost_usd": 0.001
            }
        }
    })
}

fn with_tool(tool: Value) -> Value {
    json!({"service": "shop", "version": "1", "tools": {"orders.read": tool}})
}

fn tool(tool: Value) -> ToolDefinition {
    let mut definition = ServiceDefinition::from_json(&with_tool(tool)).unwrap();
    definition.tools.pop_first().unwrap().1
}

fn refusal(definition: &Value) -> String {
    ServiceDefinition::from_json(definition).unwrap_err().to_string()
}

fn parameters(parameters: Value) -> Value {
    tool(json!({"parameters": parameters})).parameters.unwrap()
}

#[test]
fn the_example_of_the_rfc_is_read_as_it_is_printed() {
    let definition = ServiceDefinition::from_json(&example()).unwrap();
    assert_eq!((definition.service.as_str(), definition.version.as_str()), ("stripe", "2024-01"));
    let create = &definition.tools[&ToolName::parse("charges.create").unwrap()];
    assert_eq!(create.description.as_deref(), Some("Create a new charge"));
    assert_eq!(create.scope.as_str(), "charges.create");
    assert_eq!(create.estimated_cost, Cost::from_dollars(0.02));
    assert!(create.idempotent);
    assert_eq!(
        create.parameters,
        Some(json!({
            "type": "object",
            "properties": {
                "amount": {"type": "integer"},
                "currency": {"type": "string"},
                "customer": {"type": "string"},
                "description": {"type": "string"}
            },
            "required": ["amount", "currency"],
            "additionalProperties": false
        }))
    );
    assert_eq!(
        create.returns,
        Some(json!({
            "type": "object",
            "properties": {"id": {"type": "string"}, "amount": {"type": "integer"}, "status": {"type": "string"}}
        }))
    );
}

#[test]
fn the_written_form_reads_back_as_the_same_definition() {
    let full = json!({
        "service": "shop", "version": "1", "description": "A shop.\n\nIt sells things.",
        "base_url": "https://API.example.com:443/v1/",
        "tools": {
            "orders.read": {
                "parameters": {"id": {"type": "string", "required": true}, "expand": {"type": "array"}, "key": {}},
                "http": {
                    "method": "get", "path": "/orders/{order}", "default_in": "query",
                    "parameters": {"id": {"in": "path", "name": "order"}, "key": {"in": "header", "name": "X-Key"}},
                    "headers": {"Accept": "application/json"}, "success": [200, "202-204", 203, 404]
                },
                "logging": {"default": "hash", "fields": {"id": "log", "meta.note": "omit"}},
                "timeout_ms": 5000
            },
            "orders.list": {"returns": {"type": "array", "items": {"$ref": "#/$defs/order"}, "$defs": {"order": {}}}},
            "orders.make": {
                "http": {"method": "POST", "path": "/orders", "body": "form"},
                "returns": {"$ref": "#/$defs/a", "$defs": {"a": {}}}
            }
        }
    });
    for definition in [example(), full] {
        let read = ServiceDefinition::from_json(&definition).unwrap();
        let written = read.to_json();
        assert_eq!(ServiceDefinition::from_json(&written), Ok(read), "{written:#}");
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    let tool = tool(json!({}));
    assert_eq!(tool.scope.as_str(), "orders.read");
    assert!(!tool.idempotent);
    assert_eq!((tool.parameters, tool.returns, tool.http, tool.timeout), (None, None, None, None));
    assert_eq!(tool.logging, LoggingRule::default());
}

#[test]
fn the_short_form_and_the_full_schema_mean_the_same() {
    let short = parameters(json!({"amount": {"type": "integer", "minimum": 1, "required": true}}));
    let full = parameters(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"amount": {"type": "integer", "minimum": 1}},
        "required": ["amount"],
        "additionalProperties": false
    }));
    for schema in [short, full] {
        let schema = Schema::compile(&schema).unwrap();
        assert_eq!(schema.check(&json!({"amount": 1})), Ok(()));
        for bad in [json!({}), json!({"amount": 0}), json!({"amount": "1"}), json!({"amount": 1, "other": 1})] {
            assert!(schema.check(&bad).is_err(), "{bad}");
        }
    }
}

#[test]
fn parameters_named_like_keywords_stay_parameters_in_the_short_form() {
    for name in ["type", "properties", "items", "required", "enum", "title", "description"] {
        let schema = parameters(json!({name: {"type": "string", "required": true}}));
        assert_eq!(schema["properties"][name], json!({"type": "string"}), "{name}");
        assert_eq!(schema["required"], json!([name]), "{name}");
    }
    let nothing = parameters(json!({}));
    assert_eq!(nothing, json!({"type": "object", "properties": {}, "additionalProperties": false}));
    let nested = parameters(json!({"address": {"type": "object", "required": ["city"], "properties": {"city": {}}}}));
    assert_eq!(nested["properties"]["address"]["required"], json!(["city"]));
    assert_eq!(nested.get("required"), None);
}

#[test]
fn a_field_called_type_does_not_make_an_answer_a_schema() {
    let returns = tool(json!({"returns": {"id": "string", "type": "string"}})).returns.unwrap();
    assert_eq!(returns["properties"]["type"], json!({"type": "string"}));
    assert_eq!(tool(json!({"returns": {"type": "string"}})).returns, Some(json!({"type": "string"})));
}

#[test]
fn every_unknown_member_is_refused_by_its_path() {
    let cases = [
        (json!({"service": "a", "version": "1", "tools": {}, "owner": "me"}), "`owner` is unknown"),
        (with_tool(json!({"scopes": ["a"]})), "`tools.orders.read.scopes` is unknown"),
        (
            with_tool(json!({"http": {"method": "GET", "path": "/", "query": 1}})),
            "`tools.orders.read.http.query` is unknown",
        ),
        (with_tool(json!({"logging": {"field": {}}})), "`tools.orders.read.logging.field` is unknown"),
        (
            with_tool(json!({"parameters": {"a": {"maxmum": 1}}})),
            "`tools.orders.read.parameters.properties.a.maxmum` is not a supported keyword",
        ),
        (
            with_tool(json!({"parameters": {"type": "object", "propertys": {}}})),
            "`tools.orders.read.parameters.propertys` is not a supported keyword",
        ),
        (
            with_tool(
                json!({"http": {"method": "GET", "path": "/{a}", "parameters": {"a": {"in": "path", "as": "b"}}}}),
            ),
            "`tools.orders.read.http.parameters.a.as` is unknown",
        ),
    ];
    for (definition, expected) in cases {
        let error = refusal(&definition);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    let cases = [
        (json!([]), "`definition` must be an object"),
        (json!({"version": "1", "tools": {}}), "`service` is missing"),
        (json!({"service": "a", "tools": {}}), "`version` is missing"),
        (json!({"service": "a", "version": "1"}), "`tools` is missing"),
        (json!({"service": "a/b", "version": "1", "tools": {}}), "`service` must not contain '/'"),
        (json!({"service": "a", "version": 1, "tools": {}}), "`version` must be a string"),
        (json!({"service": "a", "version": "1", "tools": {"a b": {}}}), "`tools.a b` is not a valid tool name"),
        (
            json!({"service": "a", "version": "1", "tools": {}, "base_url": "ftp://a"}),
            "`base_url` must begin with http",
        ),
        (with_tool(json!(null)), "`tools.orders.read` must be an object"),
        (with_tool(json!({"description": "a\u{202e}b"})), "`tools.orders.read.description` must not contain"),
        (with_tool(json!({"idempotent": "yes"})), "`tools.orders.read.idempotent` must be true or false"),
        (
            with_tool(json!({"estimated_cost_usd": -1})),
            "`tools.orders.read.estimated_cost_usd` must be a non-negative amount",
        ),
        (with_tool(json!({"timeout_ms": 200_000})), "`tools.orders.read.timeout_ms` must be an integer"),
        (with_tool(json!({"parameters": {"a": "string"}})), "`tools.orders.read.parameters.a` must be an object"),
        (with_tool(json!({"parameters": {"type": "array"}})), "`tools.orders.read.parameters.type` must be object"),
        (with_tool(json!({"parameters": {"type": ["object", "null"]}})), "`tools.orders.read.parameters.type` must be"),
        (
            with_tool(json!({"parameters": {"a": {"$ref": "https://example.com/a.json"}}})),
            "`tools.orders.read.parameters.properties.a.$ref` must refer to a part of the schema",
        ),
        (
            with_tool(json!({"logging": {"default": "drop"}})),
            "`tools.orders.read.logging.default` must be one of log, hash",
        ),
    ];
    for (definition, expected) in cases {
        let error = refusal(&definition);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_service_has_at_most_two_thousand_tools() {
    let tools = |count: usize| (0..count).map(|number| (format!("tool{number}"), json!({}))).collect::<Map<_, _>>();
    let definition = |count| json!({"service": "a", "version": "1", "tools": tools(count)});
    assert_eq!(ServiceDefinition::from_json(&definition(2000)).unwrap().tools.len(), 2000);
    assert!(refusal(&definition(2001)).contains("the limit is 2000"));
}

#[test]
fn a_parameter_of_the_path_must_be_required_by_the_schema() {
    let definition = |parameters: Value| {
        with_tool(json!({"parameters": parameters, "http": {"method": "GET", "path": "/orders/{id}"}}))
    };
    assert!(ServiceDefinition::from_json(&definition(json!({"id": {"required": true}}))).is_ok());
    for parameters in [json!({"id": {}}), json!({}), json!({"properties": {"id": {}}})] {
        assert!(refusal(&definition(parameters)).contains("must declare `id` as required"));
    }
    let misspelt = with_tool(json!({
        "parameters": {"limit": {}},
        "http": {"method": "GET", "path": "/orders", "parameters": {"limits": "query"}}
    }));
    assert_eq!(refusal(&misspelt), "`tools.orders.read.http.parameters.limits` is not a parameter of this tool");
}
