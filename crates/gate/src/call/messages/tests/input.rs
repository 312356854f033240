//! Calls that bring the input that a server has asked for.

use toolgate_model::client_input::{ClientInput, InputOrigin, ServerState};
use toolgate_model::credential::ServiceName;

use super::*;
use crate::call::binding::digest;

/// Input for the server of this service, which was called with the credential of this number.
fn input(service: &str, endpoint: Option<&str>, number: u8, name: &str) -> Option<Box<ClientInput>> {
    let origin = InputOrigin {
        service: ServiceName::parse(service).unwrap(),
        endpoint: endpoint.map(str::to_owned),
        credential: credential(service, number).id,
        asked: vec!["who".to_owned()],
        state: Some(ServerState::new("state of the server".to_owned()).unwrap()),
    };
    let responses = object(&json!({"who": {"action": "accept", "content": {"name": name}}}));
    Some(Box::new(ClientInput { responses, origin: Some(origin), ..ClientInput::default() }))
}

fn web(name: &str) -> Option<Box<ClientInput>> {
    input("web", Some("https://mcp.example/mcp"), 10, name)
}

fn call(bench: &Bench, tool: &str, input: Option<Box<ClientInput>>) -> Call {
    Call { input, ..bench.call(tool, json!({"text": "a"})) }
}

#[tokio::test]
async fn input_is_sent_to_the_server_that_asked_with_its_state_which_guardians_do_not_see() {
    let bench = mounted(|_| {});
    let call = call(&bench, "web.say", web("Ann"));
    let alternative = bench.preferred(&call).await;
    let body = &alternative.first.request.as_deref().unwrap().body.as_ref().unwrap().bytes;
    let body: Value = serde_json::from_slice(body).unwrap();
    assert_eq!(body["params"]["requestState"], "state of the server");
    assert_eq!(body["params"]["inputResponses"]["who"]["content"]["name"], "Ann");
    assert!(bench.guard(&call).await.is_ok());
    let (_, seen) = bench.guardian.seen.lock().unwrap().last().cloned().unwrap();
    assert_eq!(seen["params"]["inputResponses"], body["params"]["inputResponses"]);
    assert_eq!(seen["params"].get("requestState"), None);
    deny(&bench, OUTBOUND);
    assert!(bench.guard(&call).await.is_err());
}

#[tokio::test]
async fn input_goes_to_no_other_server_credential_or_kind_of_request() {
    let bench = mounted(|_| {});
    assert!(bench.constrain(&call(&bench, "web.say", web("Ann"))).await.is_ok());
    assert!(bench.constrain(&call(&bench, "local.say", input("local", None, 11, "Ann"))).await.is_ok());
    for (tool, input) in [
        ("web.say", input("web", Some("https://mcp.example/mcp"), 12, "Ann")),
        ("web.say", input("web", Some("https://other.example/mcp"), 10, "Ann")),
        ("web.say", input("web", None, 10, "Ann")),
        ("web.say", input("local", None, 11, "Ann")),
        ("local.say", input("local", Some("https://mcp.example/mcp"), 11, "Ann")),
        ("local.say", web("Ann")),
    ] {
        let refusal = bench.constrain(&call(&bench, tool, input)).await.err().unwrap();
        assert_eq!(refusal.code(), Code::InputStateInvalid, "{tool}");
    }
    let listing = Call { input: web("Ann"), ..bench.call("web.pages", json!({})) };
    assert_eq!(bench.constrain(&listing).await.err().unwrap().code(), Code::InputStateInvalid);
}

#[tokio::test]
async fn a_decision_covers_the_input_too() {
    let bench = mounted(|_| {});
    for (tool, ann, eve) in [
        ("web.say", web("Ann"), web("Eve")),
        ("local.say", input("local", None, 11, "Ann"), input("local", None, 11, "Eve")),
    ] {
        let mut digests = Vec::new();
        for input in [None, ann, eve] {
            let call = call(&bench, tool, input);
            let alternative = bench.preferred(&call).await;
            digests.push(digest(&call, &alternative.first, None, &call.parameters));
        }
        digests.dedup();
        assert_eq!(digests.len(), 3, "{tool}");
    }
}
