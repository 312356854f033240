//! A small document with every construct, and what becomes of each.

use serde_json::{Map, Value, json};
use toolgate_model::connection::BaseUrl;
use toolgate_model::schema::Schema;
use toolgate_model::service::{RenderedRequest, ServiceDefinition, ToolDefinition, ToolName};

use super::*;

mod constructs;
mod damaged;
mod strictness;

const SHOP: &str = include_str!("tests/shop.yaml");

fn shop() -> Value {
    document::parse(SHOP).unwrap()
}

fn imported(document: &Value) -> Imported {
    import(document, &ImportOptions::default()).unwrap()
}

/// A document of one operation, `POST /a` unless another one is named, and these components.
fn of_operation(method: &str, operation: Value, components: Value) -> Imported {
    let mut operation = operation;
    operation["operationId"] = json!("tool");
    imported(&json!({
        "openapi": "3.0.3", "info": {"title": "T", "version": "1"}, "servers": [{"url": "https://t.example"}],
        "paths": {"/a": {method: operation}}, "components": components,
    }))
}

fn tool<'i>(imported: &'i Imported, name: &str) -> &'i ToolDefinition {
    let found = imported.definition.tools.get(&ToolName::parse(name).unwrap());
    found.unwrap_or_else(|| panic!("{name} is not among {:?}", imported.definition.tools.keys().collect::<Vec<_>>()))
}

fn render(tool: &ToolDefinition, parameters: Value) -> RenderedRequest {
    let Value::Object(parameters) = parameters else { panic!("no object") };
    let schema = Schema::compile(tool.parameters.as_ref().unwrap()).unwrap();
    schema.check_parameters(&Value::Object(parameters.clone())).unwrap();
    let base = BaseUrl::parse("https://t.example").unwrap();
    tool.http.as_ref().unwrap().render(&base, &parameters).unwrap()
}

fn fits(tool: &ToolDefinition, parameters: &Value) -> bool {
    Schema::compile(tool.parameters.as_ref().unwrap()).unwrap().check_parameters(parameters).is_ok()
}

#[track_caller]
fn assert_found(imported: &Imported, kind: Kind, pointer: &str) {
    let found = imported.findings.iter().any(|finding| finding.kind == kind && finding.pointer == pointer);
    let of_kind: Vec<&str> = imported
        .findings
        .iter()
        .filter(|finding| finding.kind == kind)
        .map(|finding| finding.pointer.as_str())
        .collect();
    assert!(found, "{pointer} is not among {of_kind:#?}");
}

/// What must hold for every import.
#[track_caller]
fn assert_sound(imported: &Imported) {
    let missing = imported.findings.count(Kind::Operation);
    assert_eq!(imported.operations, imported.definition.tools.len() + missing, "{:#?}", imported.findings);
    let read = ServiceDefinition::from_json(&imported.definition.to_json()).unwrap();
    assert_eq!(read, imported.definition);
    if !imported.definition.tools.is_empty() {
        let text = yaml::write(imported);
        let read = document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(ServiceDefinition::from_json(&read).unwrap(), imported.definition, "{text}");
    }
}

#[test]
fn every_operation_is_a_tool_or_a_finding() {
    let imported = imported(&shop());
    assert_sound(&imported);
    assert_eq!(imported.operations, 10);
    for (pointer, reason) in [
        ("/paths/~1files/post", "its body is multipart/form-data, which is not supported"),
        ("/paths/~1lists/post", "its body has type \"array\"; only objects can become parameters"),
        ("/paths/~1orders~1{order id}~1notes~1{note}/options", "the method OPTIONS is not supported"),
        (
            "/paths/~1search/head",
            "it is at https://search.shop.example, not at the base URL of the service; import it as a separate service",
        ),
    ] {
        let found =
            imported.findings.iter().find(|finding| finding.pointer == pointer && finding.kind == Kind::Operation);
        assert_eq!(found.map(|finding| finding.note.as_str()), Some(reason), "{pointer}");
    }
    assert_eq!(imported.definition.tools.len(), 6);
}

#[test]
fn everything_that_is_not_carried_over_is_told_with_its_place() {
    let imported = imported(&shop());
    let list = "/paths/~1orders/get";
    let create = "/paths/~1orders/post";
    let note = "/paths/~1orders~1{order id}~1notes~1{note}";
    for (kind, pointer) in [
        (Kind::Information, "/info/contact".to_owned()),
        (Kind::Information, "/paths/~1orders/summary".to_owned()),
        (Kind::Server, "/servers/1".to_owned()),
        (Kind::ServerVariable, "/servers/0/variables/region/default".to_owned()),
        (Kind::Tag, "/tags/0".to_owned()),
        (Kind::Tag, format!("{list}/tags/1")),
        (Kind::Extension, "/x-origin".to_owned()),
        (Kind::Extension, "/components/schemas/Order/properties/bad/x-note".to_owned()),
        (Kind::CredentialParameter, "/paths/~1orders/parameters/1".to_owned()),
        (Kind::Parameter, "/paths/~1orders/parameters/2".to_owned()),
        (Kind::CredentialParameter, "/paths/~1orders/parameters/3".to_owned()),
        (Kind::Text, format!("{list}/description")),
        (Kind::Deprecated, format!("{list}/deprecated")),
        (Kind::FormatRemark, format!("{list}/parameters/0/schema/format")),
        (Kind::ParameterExpanded, format!("{list}/parameters/3")),
        (Kind::Parameter, format!("{list}/parameters/3/schema/anyOf/0/properties/nested")),
        (Kind::ParameterExpanded, format!("{list}/parameters/4")),
        (Kind::ParameterAsText, format!("{list}/parameters/5")),
        (Kind::ParameterOption, format!("{list}/parameters/6/allowReserved")),
        (Kind::Parameter, format!("{list}/parameters/7")),
        (Kind::ResponseHeader, format!("{list}/responses/200/headers/X-Total")),
        (Kind::Link, format!("{list}/responses/200/links/next")),
        (Kind::ResponseMediaType, format!("{list}/responses/200/content/text~1csv")),
        (Kind::Example, format!("{list}/responses/200/content/application~1json/example")),
        (Kind::ErrorResponse, format!("{list}/responses/404")),
        (Kind::NameRewritten, list.to_owned()),
        (Kind::MediaType, format!("{create}/requestBody/content/application~1xml")),
        (Kind::Callback, format!("{create}/callbacks/paid")),
        (Kind::OtherResponse, format!("{create}/responses/202/content/application~1json/schema")),
        (Kind::ScopeChoice, create.to_owned()),
        (Kind::ScopeRewritten, format!("{create}/security/0/oauth")),
        (Kind::BodyKeyword, "/components/schemas/Order/discriminator".to_owned()),
        (Kind::SchemaKeyword, "/components/schemas/Order/xml".to_owned()),
        (Kind::SchemaKeyword, "/components/schemas/Order/externalDocs".to_owned()),
        (Kind::SchemaKeyword, "/components/schemas/Order/properties/bad/type".to_owned()),
        (Kind::SchemaKeyword, "/components/schemas/Order/properties/bad/required".to_owned()),
        (Kind::ReferenceSibling, "/components/schemas/Order/properties/parent/description".to_owned()),
        (Kind::RequiredOneWay, "/components/schemas/Order/properties/id".to_owned()),
        (Kind::ReadOnly, "/components/schemas/Order/properties/id".to_owned()),
        (Kind::NameCollision, format!("{note}/put")),
        (Kind::NameCollision, format!("{note}/delete")),
        (Kind::ParameterRenamed, format!("{note}/put/parameters/1")),
        (Kind::ParameterAdded, format!("{note}/put")),
        (Kind::Encoding, format!("{note}/put/requestBody/content/application~1x-www-form-urlencoded/encoding/parts")),
        (Kind::BodyRequired, format!("{note}/put/requestBody")),
        (Kind::CredentialNotNeeded, format!("{note}/delete")),
        (Kind::ResponseDescription, format!("{note}/delete/responses/204/description")),
        (Kind::Body, "/paths/~1search/get/requestBody".to_owned()),
        (Kind::Reference, "/paths/~1search/get/responses/2XX/content/application~1json/schema/$ref".to_owned()),
        (Kind::MediaTypeAssumed, "/paths/~1labels~1{kind}.{ending}/patch/requestBody/content/*~1*".to_owned()),
        (Kind::ComponentUnused, "/components/schemas/Unused".to_owned()),
        (Kind::SecurityScheme, "/components/securitySchemes/login".to_owned()),
    ] {
        assert_found(&imported, kind, &pointer);
    }
    assert_eq!(imported.findings.count(Kind::UnknownMember), 0);
}

#[test]
fn tiers_scopes_and_names_follow_the_rules() {
    let imported = imported(&shop());
    let definition = &imported.definition;
    assert_eq!((definition.service.as_str(), definition.version.as_str()), ("shop-api-test", "1.2"));
    assert_eq!(definition.base_url.as_ref().unwrap().to_string(), "https://eu.shop.example/v1");
    let list = tool(&imported, "orders.list").to_json();
    assert_eq!(list["title"], "List orders");
    assert_eq!(list["description"], "Deprecated. Lists them");
    assert_eq!((&list["safety_tier"], &list["scope"]), (&json!("read"), &json!("orders.read")));
    assert_eq!(list["idempotent"], true);
    let create = tool(&imported, "orders.create").to_json();
    assert_eq!((&create["safety_tier"], &create["scope"]), (&json!("write"), &json!("shop.example.auth.orders")));
    assert_eq!((&create["idempotent"], &create["http"]["success"]), (&json!(false), &json!(["201-202"])));
    assert_eq!(tool(&imported, "get.search").to_json()["scope"], "read");
    assert_eq!(tool(&imported, "labels").to_json()["scope"], "plain.write");
    // Neither name depends on the other operation's being there.
    let mut document = shop();
    let notes = &mut document["paths"]["/orders/{order id}/notes/{note}"];
    notes.as_object_mut().unwrap().insert("post".to_owned(), json!({"operationId": "note", "responses": {}}));
    let names = |imported: &Imported| -> Vec<String> {
        let names = imported.definition.tools.keys().map(ToString::to_string);
        names.filter(|name| name.starts_with("note.")).collect()
    };
    let more = names(&super::import(&document, &ImportOptions::default()).unwrap());
    assert_eq!((names(&imported).len(), more.len()), (2, 3));
    assert!(names(&imported).iter().all(|name| more.contains(name)));
}

#[test]
fn credentials_are_described_as_they_must_be_added() {
    let imported = imported(&shop());
    let needs: Vec<Value> = imported
        .credentials
        .iter()
        .map(|need| json!([need.scheme, need.auth_type, need.metadata, need.operations]))
        .collect();
    assert_eq!(
        needs,
        [
            json!(["key", "api_key", {"auth": {"header_name": "X-Api-Key"}}, 4]),
            json!(["oauth", "oauth2_client_credentials", {"token_url": "https://shop.example/token"}, 1]),
        ]
    );
    let text = yaml::write(&imported);
    assert!(text.contains("# Credential for key (4 operations): auth_type api_key"), "{text}");
    assert!(text.contains("    safety_tier: read  # proposed\n"), "{text}");
}

#[test]
fn wishes_count_before_the_document() {
    let options = ImportOptions {
        service: Some(ServiceName::parse("other").unwrap()),
        version: Some(ServiceVersion::parse("9").unwrap()),
        base_url: Some(BaseUrl::parse("https://other.example").unwrap()),
        without_returns: true,
    };
    let imported = import(&shop(), &options).unwrap();
    assert_eq!((imported.definition.service.as_str(), imported.definition.version.as_str()), ("other", "9"));
    assert_eq!(imported.definition.base_url, options.base_url);
    assert!(imported.definition.tools.values().all(|tool| tool.returns.is_none()));
    assert_found(&imported, Kind::Server, "/servers/0");
    assert_found(&imported, Kind::Information, "/info/version");
    assert_found(&imported, Kind::ResponseSchema, "/paths/~1orders/get/responses/200/content/application~1json/schema");
}

#[test]
fn other_documents_are_refused_with_a_sentence() {
    let refusal = |document: Value| import(&document, &ImportOptions::default()).unwrap_err();
    assert_eq!(refusal(json!({"swagger": "2.0"})), ImportError::NotOpenApi);
    assert_eq!(refusal(json!({"openapi": "2.9"})), ImportError::Version("2.9".to_owned()));
    assert_eq!(refusal(json!({"openapi": "3.10.0"})), ImportError::Version("3.10.0".to_owned()));
    assert_eq!(refusal(json!({"openapi": "3.1.0", "info": {"version": "1"}})), ImportError::NoName);
    assert_eq!(refusal(json!({"openapi": "3.1.0", "info": {"title": "a"}})), ImportError::NoVersion);
}

#[test]
fn a_service_has_no_more_tools_than_it_may_have() {
    let paths: Map<String, Value> = (0..2_005).map(|number| (format!("/p{number}"), json!({"get": {}}))).collect();
    let imported = imported(&json!({"openapi": "3.1.0", "info": {"title": "a", "version": "1"}, "paths": paths}));
    assert_eq!((imported.operations, imported.definition.tools.len()), (2_005, 2_000));
    assert_eq!(imported.findings.count(Kind::Operation), 5);
}
