//! Requests of every form are the same operations, and what is wrong with one is said in its form.

use http::Method;
use http::request::Parts;
use serde_json::{Value, json};
use toolgate_gate::call::Denial;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::a2a::{Operation, Version};

use super::resource::{Resource, route};
use super::{json_rpc, outcome};

fn parts(method: &str, path: &str, version: Option<&str>) -> Parts {
    let mut request = http::Request::builder().method(method).uri(path);
    if let Some(version) = version {
        request = request.header("A2A-Version", version);
    }
    request.body(()).unwrap().into_parts().0
}

/// The operation and the parameters of a request as HTTP and JSON.
fn read(method: &str, path: &str, body: &Value) -> Option<(String, Operation, Version, Value)> {
    let version = if path.contains("/v1/") { "0.3" } else { "1.0" };
    let parts = parts(method, path, Some(version));
    let (agent, Resource::Operation(routed)) = route(&parts.method, parts.uri.path())? else { return None };
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let asked = routed.read(&parts, &bytes).ok()?;
    Some((agent, asked.operation, asked.spoken.version, Value::Object(asked.params)))
}

#[test]
fn paths_are_operations_of_both_versions() {
    let nothing = json!({});
    for (method, path, operation, params) in [
        ("POST", "/message:send", Operation::Send, json!({"a": 1})),
        ("POST", "/message:stream", Operation::Stream, json!({"a": 1})),
        ("GET", "/tasks/t%2F1?historyLength=3", Operation::Get, json!({"id": "t/1", "historyLength": 3})),
        ("POST", "/tasks/t:cancel", Operation::Cancel, json!({"id": "t"})),
        ("GET", "/tasks/t:subscribe", Operation::Subscribe, json!({"id": "t"})),
        ("POST", "/tasks/t:subscribe", Operation::Subscribe, json!({"id": "t"})),
        ("DELETE", "/tasks/t/pushNotificationConfigs/c", Operation::PushDelete, json!({"id": "t"})),
    ] {
        for (prefix, version) in [("", Version::V1_0), ("/v1", Version::V0_3)] {
            let body = if operation.sends() { json!({"a": 1}) } else { Value::Null };
            let found = read(method, &format!("/a2a/travel{prefix}{path}"), &body);
            assert_eq!(
                found,
                Some(("travel".to_owned(), operation, version, params.clone())),
                "{method} {prefix}{path}"
            );
        }
    }
    let list = read("GET", "/a2a/travel/tasks?includeArtifacts=true&contextId=c", &Value::Null).unwrap();
    assert_eq!((list.1, list.3), (Operation::List, json!({"includeArtifacts": true, "contextId": "c"})));
    for (method, path) in [
        ("GET", "/a2a/travel/message:send"),
        ("GET", "/a2a/travel/v1/tasks"),
        ("POST", "/a2a/travel/tasks/:cancel"),
        ("GET", "/a2a/travel/tenant/tasks/t"),
        ("GET", "/a2a/travel/tasks/%zz"),
    ] {
        assert!(read(method, path, &nothing).is_none(), "{path}");
    }
}

#[test]
fn the_path_names_the_task_whatever_the_body_says() {
    let body = json!({"id": "b", "ID": "c", "name": "tasks/d", "metadata": {}});
    let (.., params) = read("POST", "/a2a/travel/tasks/a:cancel", &body).unwrap();
    assert_eq!(params, json!({"id": "a", "metadata": {}}));
}

#[test]
fn the_card_is_found_under_both_names() {
    for name in ["agent-card.json", "agent.json"] {
        let found = route(&Method::GET, &format!("/a2a/travel/.well-known/{name}"));
        assert!(matches!(found, Some((agent, Resource::Card)) if agent == "travel"));
    }
    assert!(route(&Method::GET, "/a2a/travel/.well-known/else").is_none());
}

#[test]
fn methods_and_headers_must_agree_on_the_version() {
    let code = |version: Option<&str>, body: Value| {
        let parts = parts("POST", "/a2a/travel", version);
        json_rpc::read(&parts, body.to_string().as_bytes()).map(|asked| asked.operation).map_err(|error| error.1.code())
    };
    let request = |method: &str| json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": {}});
    assert_eq!(code(Some("1.0"), request("SendMessage")), Ok(Operation::Send));
    assert_eq!(code(Some("1.0.1"), request("SendMessage")), Ok(Operation::Send));
    assert_eq!(code(None, request("message/send")), Ok(Operation::Send));
    assert_eq!(code(Some("0.3"), request("tasks/resubscribe")), Ok(Operation::Subscribe));
    assert_eq!(code(None, request("SendMessage")), Err(-32009));
    assert_eq!(code(Some("1.7"), request("SendMessage")), Err(-32009));
    assert_eq!(code(Some("1.0"), request("message/send")), Err(-32009));
    assert_eq!(code(None, request("tasks/sendSubscribe")), Err(-32601));
    assert_eq!(code(None, json!([request("message/send")])), Err(-32600));
    assert_eq!(code(None, json!({"jsonrpc": "2.0", "id": null, "method": "tasks/get"})), Err(-32600));
    assert_eq!(code(None, json!({"id": 1, "method": "tasks/get"})), Err(-32600));
    let mut listed = request("tasks/get");
    listed["params"] = json!([]);
    assert_eq!(code(None, listed), Err(-32602));
}

#[test]
fn refusals_are_told_in_the_words_of_the_protocol() {
    let code = |refusal: Refusal| outcome::denied(&Denial { invocation: None, refusal, admitted: false }).code();
    for (refused, expected) in [
        (Code::PeerTaskNotFound, -32001),
        (Code::PeerResponseInvalid, -32006),
        (Code::GuardianDenied, -32050),
        (Code::GuardianTimedOut, -32050),
        (Code::PolicyDenied, -32050),
        (Code::GrantRateLimited, -32050),
        (Code::ParametersInvalid, -32602),
        (Code::ProxyError, -32603),
    ] {
        assert_eq!(code(Refusal::new(refused, "why")), expected, "{refused:?}");
    }
    let path = "parameters.configuration.taskPushNotificationConfig";
    assert_eq!(code(Refusal::new(Code::ParametersInvalid, "why").with("path", path)), -32003);
    // Nothing about a task of somebody else.
    let foreign = Refusal::new(Code::PeerTaskNotFound, "why").with("owner", "somebody");
    let error = outcome::denied(&Denial { invocation: None, refusal: foreign, admitted: false });
    assert!(!error.json_rpc().to_string().contains("somebody"));
}
