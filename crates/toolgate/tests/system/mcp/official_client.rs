//! The official Python client of the protocol, unmodified, as people install it, in both eras.

use std::path::Path;
use std::process::Command;

use crate::approvals::office::Office;
use crate::openintent_sdk::python;
use crate::world::{World, on_both_engines, text};

on_both_engines! {
    also_behind_nginx:
    the_official_client_lists_calls_waits_and_hears_no_more_of_what_was_revoked,
}

fn the_official_client_lists_calls_waits_and_hears_no_more_of_what_was_revoked(world: &World) {
    let office = Office::open(world);
    let grants = office.admin.get("/api/v1/grants?agent_id=teller").ok();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/mcp_client.py");
    let output = Command::new(python())
        // Nothing of this machine: no proxies, no other packages.
        .env_clear()
        .env("TOOLGATE_URL", format!("http://{}", world.address()))
        .env("ADMIN_KEY", world.gate.token())
        .env("AGENT_KEY", &office.agent.key)
        .env("APPROVER_KEY", &office.clerk.key)
        .env("GRANT", text(&grants, "/grants/0/id"))
        .arg("-B")
        .arg(script)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}", output.status);
    for mode in ["2026-07-28", "auto", "legacy"] {
        assert!(said.contains(&format!("{mode}: done")), "{said}");
    }
    // One balance and one transfer in each mode.
    assert_eq!(office.bank.count(), 6);
}
