//! Very many rules: they are taken, they hold, and calls go on.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use toolgate_testkit::http;

use super::office::{Office, no_note, to_json};
use crate::world::World;

const FILES: usize = 10;
const RULES_OF_A_FILE: usize = 1_000;

#[test]
fn ten_thousand_rules_are_applied_and_hold() {
    let world = World::sqlite();
    let office = Office::open(&world);
    let rule = |number: usize| {
        format!(
            "@id(\"rule-{number}\")\nforbid (principal == Principal::\"agent-{number}\", \
             action == Action::\"call:desk.note\", resource);\n"
        )
    };
    let of_file = |file: usize| {
        let numbers = file * RULES_OF_A_FILE..(file + 1) * RULES_OF_A_FILE;
        (format!("rules-{file}.cedar"), numbers.map(rule).collect::<String>())
    };
    let mut files: Vec<(String, String)> = (0..FILES).map(of_file).collect();
    files.push(("last.cedar".to_owned(), no_note("last", "lunch")));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let made = applies(&world, &json!({"files": to_json(&files)}));
    assert_eq!(made["rules"].as_array().unwrap().len(), FILES * RULES_OF_A_FILE + 1);
    office.note("dinner").ok();
    assert_eq!(office.note("lunch").refused(403, "POLICY_DENIED")["policy_id"], "last");
    office.call("send", json!({"text": "lunch"})).ok();
    assert_eq!(office.desk.count(), 2);
}

/// Applies policies with all the patience that it takes: code that is not optimised is slow with so many.
fn applies(world: &World, body: &Value) -> Value {
    let (address, body) = (world.gate.address(), body.to_string());
    let head = format!(
        "PUT /api/v1/policies HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        world.gate.token(),
        body.len()
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let answer = http::parse(&bytes).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}
