//! The OpenAPI document against the running gate: schemathesis asks on every operation, with what fits the document and
//! with what does not, and no answer may be a fault or differ from what the document says.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::openintent_sdk::python;
use crate::world::{World, on_both_engines, send};

on_both_engines! {
    unattended:
    every_answer_is_as_the_document_says,
}

fn every_answer_is_as_the_document_says(world: &World) {
    let upstream = Upstream::start(|request| match request.path() {
        "/broken" => Reply::json(500, json!({"error": "out of order"})),
        _ => Reply::json(200, json!({"id": "ch_1"})),
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/openapi_check.py");
    let output = Command::new(python())
        // Nothing of this machine: no proxies, no other packages.
        .env_clear()
        .env("TOOLGATE_URL", world.gate.url())
        .env("ADMIN_KEY", world.gate.token())
        .env("UPSTREAM_URL", upstream.url())
        .arg("-B")
        .arg(script)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}", output.status);
    assert!(said.contains("No issues found"), "{said}");
    assert!(upstream.count() > 0, "tools were called: {said}");
}

#[test]
fn the_document_is_shown_to_everybody_and_is_the_one_that_was_checked() {
    let world = World::sqlite();
    let reply = send(world.gate.address(), "GET", "/openapi.json", &[], b"");
    assert_eq!(reply.ok(), toolgate_server::operations::openapi::document());
    assert_eq!(reply.answer.header("content-type"), Some("application/json"));
}
