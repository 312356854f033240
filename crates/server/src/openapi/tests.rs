//! Each document matches the routes, and is valid.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use toolgate_api::json_text;
use toolgate_gate::refusal::Code;

use super::*;
use crate::router::{Route, guarded_routes};
use crate::{aos, approvals, openwop, operations as operators, protected_resource};

/// A document, and the routes that it is about: those that need a key, and those that do not.
struct Described {
    document: Value,
    guarded: Vec<Route>,
    open: Vec<Route>,
}

fn all() -> [Described; 2] {
    [
        Described {
            document: generated::toolgate().unwrap(),
            guarded: guarded_routes(),
            open: operators::routes()
                .into_iter()
                .chain(approvals::open_routes())
                .chain(protected_resource::routes())
                .collect(),
        },
        Described {
            document: generated::openwop().unwrap(),
            guarded: openwop::routes().into_iter().chain(aos::routes()).collect(),
            open: openwop::open_routes(),
        },
    ]
}

fn documents() -> impl Iterator<Item = Value> {
    all().into_iter().map(|described| described.document)
}

fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters") {
            found.push((method.to_uppercase(), path.clone(), operation.clone()));
        }
    }
    found
}

/// Calls `visit` with every value of the document and its place.
fn walk(value: &Value, place: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(place, value);
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| walk(value, &format!("{place}/{name}"), visit));
        }
        Value::Array(elements) => elements.iter().for_each(|element| walk(element, place, visit)),
        _ => {}
    }
}

/// The value itself, or the one that it refers to.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
        None => value,
    }
}

fn named(routes: Vec<Route>) -> BTreeSet<(String, String)> {
    routes.into_iter().map(|route| (route.method.to_string(), route.path.to_owned())).collect()
}

/// `UPDATE_OPENAPI=1 cargo test -p toolgate-server openapi` regenerates the files.
#[test]
fn the_documents_that_are_served_are_those_of_the_endpoints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi");
    let documents =
        [("openapi.json", TOOLGATE, generated::toolgate()), ("openwop.json", OPENWOP, generated::openwop())];
    for (name, served, generated) in documents {
        let text = json_text::pretty(&generated.unwrap());
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(folder.join(name), text).unwrap();
            continue;
        }
        let update = "run `UPDATE_OPENAPI=1 cargo test -p toolgate-server openapi`";
        assert!(served == text, "{name} is not what the endpoints say; {update}");
    }
}

#[test]
fn the_document_names_exactly_the_routes_that_are_served_and_which_need_a_key() {
    for Described { document, guarded, open, .. } in all() {
        let documented = |open: bool| -> BTreeSet<_> {
            let operations = operations(&document).into_iter();
            let is_open = |operation: &Value| operation["security"].as_array().unwrap().is_empty();
            let those = operations.filter(|(_, _, operation)| is_open(operation) == open);
            those.map(|(method, path, _)| (method, path)).collect()
        };
        assert_eq!(documented(false), named(guarded));
        assert_eq!(documented(true), named(open));
    }
}

#[test]
fn every_operation_says_what_it_does_and_how_it_answers() {
    for document in documents() {
        let tags: BTreeSet<&str> =
            document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
        let mut ids = BTreeSet::new();
        for (method, path, operation) in operations(&document) {
            let asked = format!("{method} {path}");
            assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{asked}: its id is taken");
            assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{asked}: no summary");
            assert!(tags.contains(operation["tags"][0].as_str().unwrap()), "{asked}: no tag");
            let statuses: BTreeSet<&str> =
                operation["responses"].as_object().unwrap().keys().map(String::as_str).collect();
            assert!(statuses.iter().any(|status| status.starts_with('2') || *status == "501"), "{asked}: never done");
            if operation["security"] != json!([]) {
                let changes = if method == "GET" { &[][..] } else { &["409", "413", "415"][..] };
                for status in ["400", "401", "403", "429", "500", "503"].iter().chain(changes) {
                    assert!(statuses.contains(status), "{asked}: {status} is missing");
                }
            }
            for (status, response) in operation["responses"].as_object().unwrap() {
                let response = resolved(&document, response);
                let told = response["content"].is_object() || matches!(status.as_str(), "204" | "304");
                assert!(response["description"].is_string() && told, "{asked}: {status}");
            }
        }
    }
}

#[test]
fn the_parameters_of_a_path_are_those_that_are_described() {
    for document in documents() {
        for (path, item) in document["paths"].as_object().unwrap() {
            let described = item["parameters"].as_array().into_iter().flatten().map(|parameter| {
                let parameter = resolved(&document, parameter);
                assert_eq!((&parameter["in"], &parameter["required"]), (&json!("path"), &json!(true)), "{path}");
                parameter["name"].as_str().unwrap()
            });
            let placeholders = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
            assert_eq!(described.collect::<Vec<_>>(), placeholders.collect::<Vec<_>>(), "{path}");
        }
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_used() {
    for document in documents() {
        let mut used = BTreeSet::new();
        walk(&document, "", &mut |place, value| {
            if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{place}: there is no {reference}");
                used.insert(pointer.to_owned());
            }
        });
        for kind in ["schemas", "parameters", "responses"] {
            for name in document["components"][kind].as_object().unwrap().keys() {
                let pointer = format!("/components/{kind}/{name}");
                assert!(used.contains(&pointer), "{pointer} is used nowhere");
            }
        }
    }
}

#[test]
fn every_request_refuses_unknown_fields_and_every_example_fits() {
    for document in documents() {
        for (method, path, operation) in operations(&document) {
            let asked = format!("{method} {path}");
            let Some(media) = operation["requestBody"]["content"].get("application/json") else { continue };
            let schema = resolved(&document, &media["schema"]);
            // AOS requires that unknown members are tolerated.
            if operation["tags"][0] != "hooks" {
                assert_eq!(
                    (&schema["type"], &schema["additionalProperties"]),
                    (&json!("object"), &json!(false)),
                    "{asked}"
                );
            }
            if let Some(example) = media.get("example") {
                let rooted = json!({"allOf": [media["schema"]], "components": document["components"]});
                let problem = jsonschema::validator_for(&rooted).unwrap().validate(example).err();
                assert!(problem.is_none(), "{asked}: {problem:?}");
            }
        }
    }
}

#[test]
fn every_schema_is_a_schema() {
    for document in documents() {
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            let problem = jsonschema::draft202012::meta::validate(schema).err();
            assert!(problem.is_none(), "{name}: {problem:?}");
            assert!(schema["type"] == json!("array") || schema.get("$ref").is_none(), "{name}: only another name");
        }
        walk(&document["paths"], "", &mut |place, value| {
            if place.ends_with("/schema") {
                let problem = jsonschema::draft202012::meta::validate(value).err();
                assert!(problem.is_none(), "{place}: {problem:?}");
            }
        });
    }
}

#[test]
fn the_codes_and_permissions_are_those_of_the_gate() {
    let document = generated::toolgate().unwrap();
    let codes = document["components"]["schemas"]["ErrorCode"]["enum"].as_array().unwrap();
    assert_eq!(codes.len(), Code::ALL.len());
    assert!(codes.contains(&json!("GRANT_NOT_FOUND")));
    assert!(document["components"]["schemas"]["Permission"]["enum"].as_array().unwrap().contains(&json!("audit.read")));
}
