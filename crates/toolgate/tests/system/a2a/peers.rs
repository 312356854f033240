//! Peers: nothing of one can be used before a person has accepted its card, and the card that agents get leads to the gate.

use serde_json::{Value, json};

use super::network::{Network, Peer, accept};
use crate::world::{World, setup, text};

const CARD: &str = "/a2a/travel/.well-known/agent-card.json";

#[test]
fn a_card_is_quarantined_until_it_is_accepted() {
    let world = World::of(&setup().reaching_loopback(), None);
    let (peer, admin) = (Peer::start(), world.admin());
    let body = json!({"name": "travel", "url": peer.url, "vault_id": admin.vault()});
    let added = admin.post("/api/v1/peers", &body).created();
    assert_eq!((&added["transport"], &added["server_state"]), (&json!("a2a"), &json!("new")));
    let credential = text(&added, "/credential_id").to_owned();
    let clerk = world.agent("clerk", &["tools.invoke"]);
    clerk.get(CARD).refused(404, "SERVICE_NOT_FOUND");
    let grant = json!({"credential_id": credential, "agent_id": "clerk", "scopes": ["a2a.send"]});
    admin.post("/api/v1/grants", &grant).refused(400, "SCOPE_UNAVAILABLE");
    assert_eq!(accept(&admin)["server_state"], "accepted");
    clerk.get(CARD).refused(404, "SERVICE_NOT_FOUND");
    admin.post("/api/v1/grants", &grant).created();
    clerk.get(CARD).ok();
    // With a reviewer's eyes: what is accepted is what was shown.
    let another = json!({"server": format!("sha256:{}", "0".repeat(64))});
    admin.post("/api/v1/mounts/travel/accept", &another).refused(409, "MOUNT_CHANGED");
}

#[test]
fn the_card_leads_to_the_gate() {
    let network = Network::open();
    let reply = network.clerk.get(CARD);
    let card = reply.ok();
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    let address = network.address();
    assert!(interfaces.iter().all(|interface| interface["url"] == address), "{card}");
    let forms: Vec<(&str, &str)> = interfaces
        .iter()
        .map(|interface| (text(interface, "/protocolBinding"), text(interface, "/protocolVersion")))
        .collect();
    assert_eq!(forms, [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")]);
    assert_eq!(card["capabilities"]["pushNotifications"], false);
    assert!(!card.to_string().contains(&network.peer.url), "{card}");
    assert_eq!(network.clerk.get("/a2a/travel/.well-known/agent.json").ok(), card);
}

#[test]
fn versions_and_methods_that_do_not_fit_are_refused_in_the_form_of_the_protocol() {
    let network = Network::open();
    let code = |method: &str, version: &[(&str, &str)], id: Value| {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"id": "x"}});
        network.clerk.ask_with("POST", "/a2a/travel", version, Some(&body)).ok()["error"]["code"].clone()
    };
    let modern = [("A2A-Version", "1.0")];
    assert_eq!(code("GetTask", &modern, json!(1)), -32001);
    assert_eq!(code("GetTask", &[], json!(1)), -32009);
    assert_eq!(code("tasks/get", &[], json!(1)), -32001);
    assert_eq!(code("tasks/get", &modern, json!(1)), -32009);
    assert_eq!(code("GetTask", &[("A2A-Version", "9.9")], json!(1)), -32009);
    assert_eq!(code("tasks/send", &[], json!(1)), -32601);
    assert_eq!(code("GetTask", &modern, Value::Null), -32600);
    assert_eq!(code("CreateTaskPushNotificationConfig", &modern, json!(1)), -32003);
    assert_eq!(code("GetExtendedAgentCard", &modern, json!(1)), -32004);
    let missing = network.clerk.ask_with("GET", "/a2a/travel/tasks/x", &modern, None);
    assert_eq!(missing.expect(404)["error"]["status"], "NOT_FOUND");
    network.clerk.ask_with("GET", "/a2a/travel/tasks/x", &[], None).expect(400);
}
