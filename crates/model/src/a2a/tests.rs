//! Messages are understood in every spelling that peers understand, and a card leads to the gate and nowhere else.

use serde_json::{Map, Value, json};

use super::*;
use crate::credential::ServiceName;
use crate::mount::version;
use crate::service::ServiceDefinition;

fn card() -> Value {
    json!({
        "name": "Travel", "description": "Books journeys.", "version": "3", "unknown": {"kept": true},
        "supportedInterfaces": [
            {"url": "https://travel.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "acme"},
            {"url": "https://travel.example/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": "https://travel.example/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            {"url": "https://elsewhere.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": "https://travel.example/old", "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3"},
        ],
        "capabilities": {"streaming": true, "pushNotifications": true, "extensions": [{"uri": "x"}]},
        "securitySchemes": {"theirs": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "skills": [{"id": "book", "name": "Bo\u{200b}ok", "security": [{}], "tags": []}],
        "signatures": [{"protected": "x", "signature": "y"}],
    })
}

#[test]
fn every_operation_has_its_row() {
    for operation in Operation::ALL {
        assert_eq!(Operation::parse(operation.as_str()), Some(operation));
        let method = operation.method(Version::V1_0).unwrap();
        assert_eq!(Operation::of_method(method), Some((operation, Version::V1_0)));
        if let Some(method) = operation.method(Version::V0_3) {
            assert_eq!(Operation::of_method(method), Some((operation, Version::V0_3)));
        }
    }
    assert_eq!(Operation::of_method("tasks/list"), None);
    assert_eq!(Operation::of_method("tasks/send"), None);
}

#[test]
fn ids_are_found_in_every_spelling() {
    for message in [
        json!({"message": {"taskId": "t", "contextId": "c", "referenceTaskIds": ["r", "t"]}}),
        json!({"message": {"task_id": "t", "context_id": "c", "reference_task_ids": ["t", "r"]}}),
        json!({"request": {"TaskID": "t", "contextId": "c", "referenceTaskIds": ["r"]}}),
    ] {
        let mut named = named_in_request(Operation::Send, &message).unwrap();
        named.tasks.sort();
        assert_eq!((named.tasks, named.contexts), (vec!["r".to_owned(), "t".to_owned()], vec!["c".to_owned()]));
    }
    let none = json!({"message": {"taskId": "", "contextId": null}});
    assert!(named_in_request(Operation::Stream, &none).unwrap().is_empty());
    assert_eq!(named_in_request(Operation::Get, &json!({"id": "t"})).unwrap().tasks, ["t"]);
    assert_eq!(named_in_request(Operation::List, &json!({"context_id": "c"})).unwrap().contexts, ["c"]);
}

#[test]
fn ids_that_could_be_read_in_two_ways_are_refused() {
    for (operation, parameters) in [
        (Operation::Send, json!({"message": {"taskId": "a", "task_id": "b"}})),
        (Operation::Send, json!({"message": {"taskId": 1}})),
        (Operation::Send, json!({"message": {}, "request": {}})),
        (Operation::Send, json!({"message": {"contextId": "a\nb"}})),
        (Operation::Send, json!({"message": {"taskId": "x".repeat(600)}})),
        (Operation::Send, json!({})),
        (Operation::Get, json!({"id": ""})),
        (Operation::Get, json!({"id": "a", "ID": "b"})),
        (Operation::Cancel, json!({"id": "a", "name": "tasks/b"})),
    ] {
        assert!(named_in_request(operation, &parameters).is_err(), "{parameters}");
    }
}

#[test]
fn results_name_their_tasks_in_every_form() {
    let task = json!({"id": "t", "contextId": "c", "status": {"state": "working"}});
    for result in [
        task.clone(),
        json!({"task": task}),
        json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {}}}),
        json!({"artifact_update": {"task_id": "t", "context_id": "c", "artifact": {"artifactId": "a"}}}),
        json!({"message": {"taskId": "t", "contextId": "c", "messageId": "m"}}),
        json!({"tasks": [task], "totalSize": 1}),
    ] {
        let named = named_in_result(&result).unwrap();
        assert_eq!((named.tasks, named.contexts), (vec!["t".to_owned()], vec!["c".to_owned()]), "{result}");
    }
}

#[test]
fn content_may_change_and_identity_may_not() {
    let before = json!({
        "jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "a"}], "metadata": {"id": 1}}},
    });
    let change = |pointer: &str, value: Value| {
        let mut after = before.clone();
        *after.pointer_mut(pointer).unwrap() = value;
        same_identity(&before, &after)
    };
    assert!(change("/params/message/parts", json!([{"text": "b"}, {"data": {"id": 7}}])));
    assert!(change("/params/message/metadata", json!({})));
    for (pointer, value) in [
        ("/id", json!(2)),
        ("/method", json!("CancelTask")),
        ("/params/message/messageId", json!("n")),
        ("/params/message/role", json!("ROLE_AGENT")),
        ("/params/message", json!({"parts": []})),
    ] {
        assert!(!change(pointer, value), "{pointer}");
    }
    let mut added = before.clone();
    added["params"]["message"]["taskId"] = json!("t");
    assert!(!same_identity(&before, &added));
}

#[test]
fn only_interfaces_at_the_first_origin_are_used() {
    let offered = check_card(&card()).unwrap();
    assert_eq!(offered.modern.as_ref().map(|one| one.binding), Some(Binding::JsonRpc));
    assert_eq!(offered.legacy, None, "it is at another origin");
    assert_eq!(offered.legacy_http.as_ref().map(|one| one.url.path()), Some("/old"));
    let old = json!({"name": "a", "description": "b", "url": "https://a.example/x", "protocolVersion": "0.3.0"});
    assert_eq!(check_card(&old).unwrap().legacy.unwrap().url.path(), "/x");
}

#[test]
fn cards_that_cannot_be_used_are_refused_with_a_reason() {
    let changed = |member: &str, value: Value| {
        let mut card = card();
        card[member] = value;
        check_card(&card).unwrap_err()
    };
    assert!(changed("name", json!(" ")).contains("no name"));
    assert!(changed("supportedInterfaces", json!([])).contains("no interface"));
    let required = json!({"extensions": [{"uri": "urn:x", "required": true}]});
    assert!(changed("capabilities", required).contains("urn:x"));
    assert!(changed("description", json!("x".repeat(70_000))).contains("larger"));
    let local = json!([{"url": "file:///etc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
    assert!(changed("supportedInterfaces", local).contains("no interface"));
}

#[test]
fn a_rewritten_card_leads_to_the_gate_and_keeps_what_it_does_not_know() {
    let address = "https://gate.example/a2a/travel";
    let rewritten = rewrite_card(&card(), &card(), address);
    let text = rewritten.to_string();
    assert!(!text.contains("travel.example") && !text.contains("elsewhere") && !text.contains("theirs"), "{text}");
    assert_eq!(rewritten["unknown"]["kept"], true);
    assert_eq!(rewritten["url"], address);
    assert_eq!(rewritten["preferredTransport"], "HTTP+JSON");
    assert_eq!(rewritten["capabilities"], json!({"streaming": true, "pushNotifications": false}));
    assert!(rewritten.get("signatures").is_none() && rewritten["skills"][0].get("security").is_none());
    assert_eq!(rewritten["skills"][0]["name"], "Bo<U+200B>ok");
    assert_eq!(rewritten["supportedInterfaces"].as_array().unwrap().len(), 3);
}

#[test]
fn a_service_has_a_tool_for_each_operation_and_reads_back_as_it_was_written() {
    let definition = service_definition(ServiceName::parse("travel").unwrap(), version(), &card()).unwrap();
    let names: Vec<&str> = definition.tools.keys().map(|name| name.as_str()).collect();
    let modern = ["cancel", "get", "list", "send", "stream", "subscribe"];
    let legacy = ["cancel", "get", "send", "stream", "subscribe"].map(|name| format!("v03.http.{name}"));
    assert_eq!(names, modern.into_iter().chain(legacy.iter().map(String::as_str)).collect::<Vec<_>>());
    assert_eq!(definition.base_url.as_ref().unwrap().to_string(), "https://travel.example");
    assert_eq!(ServiceDefinition::from_json(&definition.to_json()).as_ref(), Ok(&definition));
    let nothing = service_definition(ServiceName::parse("travel").unwrap(), version(), &Value::Null).unwrap();
    assert!(nothing.tools.is_empty());
}

#[test]
fn denials_have_the_shape_that_official_clients_show() {
    let denied = A2aError::new(ErrorKind::Denied, "no", Map::from_iter([("n".to_owned(), json!(1))]));
    let error = denied.json_rpc();
    assert_eq!((&error["code"], &error["data"][0]["reason"]), (&json!(-32050), &json!("POLICY_DENIED")));
    assert_eq!(error["data"][0]["metadata"]["n"], "1");
    let body = denied.http_body();
    let reasons = ["/error/details/0/reason", "/error/details/1/reason"].map(|pointer| body.pointer(pointer).unwrap());
    assert_eq!(reasons, ["UNSUPPORTED_OPERATION", "POLICY_DENIED"]);
    assert_eq!((denied.http(), &body["error"]["status"]), (403, &json!("PERMISSION_DENIED")));
}

#[test]
fn errors_of_agents_survive_the_change_of_binding() {
    for kind in ErrorKind::ALL.iter().filter(|kind| kind.code() > -32050 || kind.code() < -32099) {
        let error = A2aError::new(*kind, "text", Map::new());
        let over_http = A2aError::of_http(error.http(), &error.http_body());
        assert_eq!((over_http.code(), over_http.message()), (kind.code(), "text"), "{kind:?}");
        assert_eq!(A2aError::of_json_rpc(&error.json_rpc()).http(), kind.http());
    }
}
