//! Clients that other people wrote, unmodified, as people install them: the official ones in Python and TypeScript, in both
//! eras, and two agent frameworks with scripted models. Each lists, calls, is refused, waits for an approver, and hears no
//! more of what was revoked while it was connected.

use std::path::Path;
use std::process::Command;

use crate::approvals::office::Office;
use crate::node;
use crate::openintent_sdk::python;
use crate::world::{World, on_both_engines, setup, text};

on_both_engines! {
    also_behind_nginx:
    the_official_python_client_lists_calls_waits_and_hears_no_more_of_what_was_revoked,
}

fn the_official_python_client_lists_calls_waits_and_hears_no_more_of_what_was_revoked(world: &World) {
    let office = Office::open(world);
    let said = drive(world, &office, python_script("mcp_client.py"));
    for mode in ["2026-07-28", "auto", "legacy"] {
        assert!(said.contains(&format!("{mode}: done")), "{said}");
    }
    // One balance and one transfer in each mode.
    assert_eq!(office.bank.count(), 6);
}

#[test]
fn the_official_typescript_clients_do_the_same_and_open_the_page_of_an_approval() {
    let world = impatient();
    let office = Office::open(&world);
    let said = drive(&world, &office, node::script("mcp_client.cjs"));
    for name in ["2026", "2026 by itself", "2025", "2025 with the first SDK", "elicitation"] {
        assert!(said.contains(&format!("{name}: done\n")), "{said}");
    }
    // One balance and one transfer each, and the transfer whose page was opened.
    assert_eq!(office.bank.count(), 9);
}

#[test]
fn an_agent_of_the_openai_agents_sdk_does_the_same() {
    let world = impatient();
    let office = Office::open(&world);
    let said = drive(&world, &office, python_script("openai_agents.py"));
    assert!(said.contains("openai-agents: done"), "{said}");
    assert_eq!(office.bank.count(), 2);
}

#[test]
fn an_agent_of_pydantic_ai_does_the_same() {
    let world = impatient();
    let office = Office::open(&world);
    let said = drive(&world, &office, python_script("pydantic_ai_agent.py"));
    assert!(said.contains("pydantic-ai: done"), "{said}");
    assert_eq!(office.bank.count(), 3);
}

/// A gate that holds no call that waits, and knows where its pages are.
fn impatient() -> World {
    let configuration = "[server]\npublic_url = \"https://gate.example\"\n[mcp]\nhold_seconds = 0\n";
    World::of(&setup().reaching_loopback().configuration(configuration), None)
}

fn python_script(name: &str) -> Command {
    let mut command = Command::new(python());
    // Nothing of this machine: no proxies, no other packages.
    command.env_clear().arg("-B").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(name));
    command
}

/// Runs a script as the agent of an office; returns what it printed.
fn drive(world: &World, office: &Office, mut script: Command) -> String {
    let grants = office.admin.get("/api/v1/grants?agent_id=teller").ok();
    let output = script
        .env("TOOLGATE_URL", format!("http://{}", world.address()))
        .env("ADMIN_KEY", world.gate.token())
        .env("AGENT_KEY", &office.agent.key)
        .env("APPROVER_KEY", &office.clerk.key)
        .env("GRANT", text(&grants, "/grants/0/id"))
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}", output.status);
    said
}
