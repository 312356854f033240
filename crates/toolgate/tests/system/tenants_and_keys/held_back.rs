//! A request whose body is held back until its sender is entitled to nothing any more. The key was good when it was shown;
//! what counts is the moment of the change.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::world::{Actor, World, id, on_both_engines};

on_both_engines! {
    a_body_that_is_held_back_changes_nothing_once_its_key_has_ended,
    a_body_that_is_held_back_changes_nothing_once_its_sender_is_removed,
    a_body_that_is_held_back_changes_nothing_once_the_permission_is_taken,
}

const EVERYTHING: [&str; 8] = [
    "agents.act_as",
    "agents.manage",
    "approvals.decide",
    "audit.read",
    "policies.manage",
    "tools.delegate",
    "tools.invoke",
    "tools.manage",
];

/// A request whose key the gate has accepted, and whose body is still to come.
struct HeldBack {
    stream: TcpStream,
    body: String,
    asked: String,
}

impl HeldBack {
    fn begin(world: &World, actor: &Actor, method: &str, path: &str, body: &Value) -> Self {
        let body = body.to_string();
        let mut stream = TcpStream::connect(world.gate.address()).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            actor.key,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // The gate asks for the body when it knows who sends it.
        let mut interim = [0_u8; 25];
        stream.read_exact(&mut interim).unwrap();
        assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        Self { stream, body, asked: format!("{method} {path}") }
    }

    /// Sends the body; asserts that it is refused so.
    fn refused(mut self, status: u16, code: &str) {
        self.stream.write_all(self.body.as_bytes()).unwrap();
        let mut answer = String::new();
        self.stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{}: {answer}", self.asked);
        assert!(answer.contains(&format!("\"{code}\"")), "{}: {answer}", self.asked);
    }
}

/// Requests of all kinds, by somebody with every permission of the tenant, each waiting for its body.
fn requests(world: &World, actor: &Actor) -> Vec<HeldBack> {
    let admin = world.admin();
    let credential = admin.credential();
    let grant = id(&admin.grants(&credential, "worker", json!({"delegatable": true})));
    let vault = admin.vault();
    [
        ("POST", "/api/v1/agents/worker/keys".to_owned(), json!({"label": "mine"})),
        ("POST", "/api/v1/agents".to_owned(), json!({"id": "puppet", "permissions": EVERYTHING})),
        ("PATCH", "/api/v1/agents/worker".to_owned(), json!({"permissions": EVERYTHING})),
        ("POST", "/api/v1/vaults".to_owned(), json!({"name": "mine"})),
        ("POST", format!("/api/v1/vaults/{vault}/credentials"), json!({"service": "a", "label": "a"})),
        ("PATCH", format!("/api/v1/credentials/{credential}/rotate"), json!({"material": {"api_key": "mine-now"}})),
        (
            "POST",
            "/api/v1/grants".to_owned(),
            json!({"credential_id": credential, "agent_id": "puppet", "scopes": ["charges.read"]}),
        ),
        (
            "POST",
            format!("/api/v1/grants/{grant}/delegate"),
            json!({"target_agent_id": "puppet", "scopes": ["charges.read"]}),
        ),
        ("PATCH", format!("/api/v1/grants/{grant}/suspend"), json!({"reason": "mine"})),
        ("PUT", "/api/v1/policies".to_owned(), json!({"files": []})),
    ]
    .into_iter()
    .map(|(method, path, body)| HeldBack::begin(world, actor, method, &path, &body))
    .collect()
}

fn second(world: &World) -> (Actor, String) {
    world.agent("worker", &["tools.invoke"]);
    let second = world.agent("second", &EVERYTHING);
    let keys = world.admin().get("/api/v1/agents/second/keys").ok();
    (second, id(&keys["keys"][0]))
}

fn all_refused(world: &World, requests: Vec<HeldBack>, status: u16, code: &str) {
    let before = world.admin().events("").len();
    for request in requests {
        request.refused(status, code);
    }
    assert_eq!(world.admin().events("").len(), before, "nothing was done");
}

fn a_body_that_is_held_back_changes_nothing_once_its_key_has_ended(world: &World) {
    let (second, key) = second(world);
    let requests = requests(world, &second);
    world.admin().delete(&format!("/api/v1/keys/{key}")).ok();
    all_refused(world, requests, 401, "KEY_REVOKED");
}

fn a_body_that_is_held_back_changes_nothing_once_its_sender_is_removed(world: &World) {
    let (second, _) = second(world);
    let requests = requests(world, &second);
    world.admin().delete("/api/v1/agents/second").ok();
    all_refused(world, requests, 401, "KEY_REVOKED");
}

fn a_body_that_is_held_back_changes_nothing_once_the_permission_is_taken(world: &World) {
    let (second, _) = second(world);
    let requests = requests(world, &second);
    world.admin().patch("/api/v1/agents/second", &json!({"permissions": ["tools.invoke"]})).ok();
    all_refused(world, requests, 403, "PERMISSION_DENIED");
}
