//! Who may not touch mounts: other tenants, agents, and those who manage only their own credentials.

use serde_json::json;

use super::office::Office;
use crate::world::{World, on_both_engines};

on_both_engines! {
    another_tenant_sees_nothing_of_a_mount,
    an_agent_sees_no_mount_and_decides_nothing,
}

fn another_tenant_sees_nothing_of_a_mount(world: &World) {
    let office = Office::open(world);
    office.accept(&["echo"]);
    let other = world.tenant("acme");
    assert_eq!(other.get("/api/v1/mounts").ok()["mounts"], json!([]));
    other.get("/api/v1/mounts/files").refused(404, "MOUNT_NOT_FOUND");
    other.get("/api/v1/mounts/files/review").refused(404, "MOUNT_NOT_FOUND");
    other.ask("POST", "/api/v1/mounts/files/check", None).refused(404, "MOUNT_NOT_FOUND");
    let decision = json!({"tools": {"whoami": office.decision(&["whoami"])["tools"]["whoami"]}});
    other.post("/api/v1/mounts/files/accept", &decision).refused(404, "MOUNT_NOT_FOUND");
    other.post("/api/v1/mounts/files/reject", &decision).refused(404, "MOUNT_NOT_FOUND");
    other.delete("/api/v1/mounts/files").refused(404, "MOUNT_NOT_FOUND");
    assert_eq!(office.mount()["accepted"], 1);
}

fn an_agent_sees_no_mount_and_decides_nothing(world: &World) {
    let office = Office::open(world);
    let decision = office.decision(&["echo"]);
    office.agent.get("/api/v1/mounts").refused(403, "PERMISSION_DENIED");
    office.agent.get("/api/v1/mounts/files").refused(404, "MOUNT_NOT_FOUND");
    office.agent.post("/api/v1/mounts/files/accept", &decision).refused(404, "MOUNT_NOT_FOUND");
    // Whoever keeps credentials of its own looks, and changes nothing: a mount says where those of others are sent.
    let keeper = world.agent("keeper", &["tools.manage"]);
    keeper.get("/api/v1/mounts/files").ok();
    keeper.post("/api/v1/mounts/files/accept", &decision).refused(403, "PERMISSION_DENIED");
    keeper.ask("POST", "/api/v1/mounts/files/check", None).refused(403, "PERMISSION_DENIED");
    keeper.delete("/api/v1/mounts/files").refused(403, "PERMISSION_DENIED");
    let body = json!({"name": "mine", "url": office.server.url()});
    keeper.post("/api/v1/mounts", &body).refused(403, "PERMISSION_DENIED");
    assert_eq!(office.mount()["accepted"], 0);
}
