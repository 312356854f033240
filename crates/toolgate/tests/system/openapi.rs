//! The OpenAPI document against the running gate: schemathesis asks on every operation, with what fits the document and
//! with what does not, and no answer may be a fault or differ from what the document says.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toolgate_testkit::mcp_server::McpServer;
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
    let mcp_server = McpServer::start(true, false);
    let peer = Upstream::start(|_| Reply::json(200, card()));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/openapi_check.py");
    let output = Command::new(python())
        // Nothing of this machine: no proxies, no other packages.
        .env_clear()
        .env("TOOLGATE_URL", world.gate.url())
        .env("ADMIN_KEY", world.gate.token())
        .env("UPSTREAM_URL", upstream.url())
        .env("MCP_URL", mcp_server.url())
        .env("PEER_URL", peer.url())
        .arg("-B")
        .arg(script)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}", output.status);
    assert!(said.contains("No issues found"), "{said}");
    assert!(upstream.count() > 0, "tools were called: {said}");
}

/// The card of a peer agent.
fn card() -> Value {
    json!({
        "name": "Travel", "description": "Books travel.", "version": "1.0.0",
        "supportedInterfaces": [
            {"url": "http://127.0.0.1:9/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "book", "name": "Book", "description": "Books a trip.", "tags": ["travel"]}]
    })
}

/// A generated client is what most people will write their own on: it must come without a warning, and work.
#[test]
fn a_client_is_generated_from_both_documents_and_works() {
    let world = World::sqlite();
    let home = tempfile::tempdir().unwrap();
    let programs = python().parent().unwrap().to_owned();
    for (path, package) in [("/openapi.json", "toolgate_client"), ("/v1/openapi.json", "toolgate_open_wop_client")] {
        let document = home.path().join(format!("{package}.json"));
        std::fs::write(&document, send(world.gate.address(), "GET", path, &[], b"").ok().to_string()).unwrap();
        let mut generate = Command::new(programs.join("openapi-python-client"));
        // The generator runs ruff over what it wrote.
        generate.env_clear().env("PATH", &programs).env("HOME", home.path()).current_dir(home.path());
        generate.args(["generate", "--fail-on-warning", "--meta", "none", "--path"]).arg(&document);
        let output = generate.arg("--output-path").arg(home.path().join(package)).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && !said.to_lowercase().contains("warning"), "{path}: {said}");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/generated_client.py");
    let mut run = Command::new(python());
    run.env_clear().env("PYTHONPATH", home.path()).env("TOOLGATE_URL", world.gate.url());
    run.env("ADMIN_KEY", world.gate.token()).arg("-B").arg(script);
    let output = run.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("generated client: done"), "{said}");
}

#[test]
fn the_document_is_shown_to_everybody_and_is_the_one_that_was_checked() {
    let world = World::sqlite();
    let reply = send(world.gate.address(), "GET", "/openapi.json", &[], b"");
    let document: Value = serde_json::from_str(toolgate_server::openapi::TOOLGATE).unwrap();
    assert_eq!(reply.ok(), document);
    assert_eq!(reply.answer.header("content-type"), Some("application/json"));
}
