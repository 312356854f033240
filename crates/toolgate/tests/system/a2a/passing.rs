//! What is allowed passes as if the gate were not there.

use serde_json::{Value, json};

use super::network::{FORMS, Network, client, comparable};
use crate::world::text;

fn steps() -> Value {
    json!([
        {"do": "send", "text": "hello you"},
        {"do": "send", "text": "message hi"},
        {"do": "send", "text": "pieces one |two |three", "streaming": true},
        {"do": "get", "task": "$task"},
        {"do": "cancel", "task": "$task"},
        {"do": "get", "task": "00000000-0000-0000-0000-000000000000"},
    ])
}

#[test]
fn every_form_of_messages_gives_the_same_through_the_gate_as_without_it() {
    let network = Network::open();
    for form in FORMS {
        let through = network.through(&network.clerk, form, &steps(), &[]);
        let directly = network.directly(form, &steps());
        for (through, directly) in comparable(&through).iter().zip(comparable(&directly)) {
            assert_eq!(through.get("events"), directly.get("events"), "{form:?}");
            assert_eq!(through.get("error"), directly.get("error"), "{form:?}: {through}");
            assert_eq!(through.get("artifacts"), directly.get("artifacts"), "{form:?}");
        }
        assert_eq!(through.len(), 6);
    }
    // Each exchange is a call with its record.
    let invocations = network.clerk.get("/api/v1/invocations?limit=100").ok();
    assert!(invocations["invocations"].as_array().unwrap().len() >= 15, "{invocations}");
}

#[test]
fn an_agent_needs_the_scope_of_each_operation_and_a_revoked_grant_ends_all_of_it() {
    let network = Network::open();
    let reader = network.world.agent("reader", &["tools.invoke"]);
    let grant = network.admin.grants(&network.credential, "reader", json!({"scopes": ["a2a.read"]}));
    for form in FORMS {
        let came = network.through(&reader, form, &json!([{"do": "send", "text": "hello you"}]), &[]);
        assert!(text(&came[0], "/text").contains("a2a.send"), "{form:?}: {came:?}");
    }
    assert!(network.peer.received().is_empty());
    network.admin.delete(&format!("/api/v1/grants/{}", text(&grant, "/id"))).ok();
    let stranger = network.world.agent("stranger", &["tools.invoke"]);
    for agent in [&reader, &stranger] {
        let card = "/a2a/travel/.well-known/agent-card.json";
        agent.get(card).refused(404, "SERVICE_NOT_FOUND");
        agent.get(&card.replace("travel", "nobody")).refused(404, "SERVICE_NOT_FOUND");
    }
}

#[test]
fn a_revoked_grant_ends_a_stream_that_is_open() {
    let network = Network::open();
    let steps = json!([{"do": "send", "text": "forever", "streaming": true}]);
    let (address, clerk) = (network.address(), network.clerk.clone());
    let came = std::thread::scope(|scope| {
        let client = scope.spawn(|| client(&address, Some(&clerk), FORMS[0], &steps, &[]));
        crate::world::until("the message", || network.peer.has_received("forever").then_some(()));
        network.admin.delete(&format!("/api/v1/grants/{}", text(&network.grant, "/id"))).ok();
        client.join().unwrap()
    });
    assert!(text(&came[0], "/text").contains("revoked"), "{came:?}");
}
