//! A token identifies the agent for which its subject is registered, for as long as that lasts.

use serde_json::json;

use super::{PUBLIC_URL, Trusting, trusting};
use crate::world::{World, id, text};

#[test]
fn a_token_identifies_its_agent_until_its_key_ends_on_sqlite() {
    a_token_identifies_its_agent_until_its_key_ends(&Trusting::sqlite());
}

#[test]
fn a_token_identifies_its_agent_until_its_key_ends_on_postgres() {
    a_token_identifies_its_agent_until_its_key_ends(&Trusting::postgres());
}

fn a_token_identifies_its_agent_until_its_key_ends(gate: &Trusting) {
    let admin = gate.world.admin();
    for agent in ["billing", "other"] {
        admin.post("/api/v1/agents", &json!({"id": agent})).created();
    }
    let bearer = gate.bearer("workload-1");

    // Nobody is let in by a valid token alone.
    let refused = bearer.get("/api/v1/whoami").refused(401, "UNAUTHENTICATED");
    assert!(text(&refused, "/message").contains("workload-1 of the access token is not registered"), "{refused}");

    // Registered, it identifies its agent, by this and every later token. Nothing secret is handed out.
    let key = gate.register("billing", "workload-1");
    assert_eq!((&key["hint"], key.get("key")), (&json!(format!("{} workload-1", gate.issuer.url())), None), "{key}");
    for bearer in [&bearer, &gate.bearer("workload-1")] {
        assert_eq!(bearer.get("/api/v1/whoami").ok()["id"], "billing");
        let by_header = [("X-API-Key", bearer.key.as_str())];
        let reply = crate::world::send(gate.world.address(), "GET", "/api/v1/whoami", &by_header, b"");
        assert_eq!(reply.ok()["id"], "billing");
    }
    gate.bearer("workload-2").get("/api/v1/whoami").refused(401, "UNAUTHENTICATED");
    let events = admin.events("&type=key.created");
    let subject = json!({"issuer": gate.issuer.url(), "subject": "workload-1"});
    assert!(events.iter().any(|event| event["data"]["token_subject"] == subject), "{events:?}");

    // What it does is on record as of its agent; its authority is that of the agent and no more.
    bearer.post("/api/v1/agents", &json!({"id": "more"})).refused(403, "PERMISSION_DENIED");

    // One subject is one agent at a time.
    let body = json!({"token_subject": subject});
    admin.post("/api/v1/agents/other/keys", &body).refused(409, "ALREADY_EXISTS");
    admin.delete(&format!("/api/v1/keys/{}", id(&key))).ok();
    bearer.get("/api/v1/whoami").refused(401, "KEY_REVOKED");
    gate.register("other", "workload-1");
    assert_eq!(bearer.get("/api/v1/whoami").ok()["id"], "other");
    admin.delete("/api/v1/agents/other").ok();
    bearer.get("/api/v1/whoami").refused(401, "KEY_REVOKED");
}

#[test]
fn only_subjects_of_trusted_issuers_are_registered_and_only_in_their_tenant() {
    let gate = Trusting::sqlite();
    let admin = gate.world.admin();
    admin.post("/api/v1/agents", &json!({"id": "billing"})).created();
    let issuer = gate.issuer.url();
    let keys = "/api/v1/agents/billing/keys";
    for (subject, code) in [
        (json!({"issuer": "https://evil.example", "subject": "a"}), "INVALID_FIELD"),
        (json!({"issuer": format!("{issuer}/"), "subject": "a"}), "INVALID_FIELD"),
        (json!({"issuer": issuer, "subject": ""}), "INVALID_FIELD"),
        (json!({"issuer": issuer}), "INVALID_FIELD"),
        (json!({"issuer": issuer, "subject": "a", "audience": "b"}), "UNKNOWN_FIELD"),
    ] {
        admin.post(keys, &json!({"token_subject": subject})).refused(400, code);
    }
    let both = json!({
        "token_subject": {"issuer": issuer, "subject": "a"},
        "certificate": {"spiffe_id": "spiffe://example.org/a"},
    });
    admin.post(keys, &both).refused(400, "INVALID_FIELD");

    // An administrator of another tenant cannot take over the workloads of this one.
    let foreign = gate.world.tenant("acme");
    foreign.post("/api/v1/agents", &json!({"id": "spy"})).created();
    let body = json!({"token_subject": {"issuer": issuer, "subject": "workload-1"}});
    foreign.post("/api/v1/agents/spy/keys", &body).refused(400, "INVALID_FIELD");
}

#[test]
fn the_command_line_registers_a_subject_and_shows_nothing_secret() {
    let gate = Trusting::sqlite();
    gate.world.admin().post("/api/v1/agents", &json!({"id": "billing"})).created();
    let issuer = gate.issuer.url();
    let run = |arguments: &[&str]| {
        let output = gate.world.gate.cli().arg("key").args(arguments).output().unwrap();
        (output.status.success(), format!("{}{}", text_of(&output.stdout), text_of(&output.stderr)))
    };
    let create = ["create", "billing", "--token-issuer", &issuer, "--token-subject", "workload-1"];
    let (done, said) = run(&create);
    assert!(done && said.contains(&format!("the token subject {issuer} workload-1 identifies billing")), "{said}");
    assert!(!said.contains("tgk_"), "{said}");
    assert!(run(&["list", "billing"]).1.contains("workload-1"));
    let (done, said) = run(&["create", "billing", "--token-issuer", "https://evil.example", "--token-subject", "a"]);
    assert!(!done && said.contains("identity.file"), "{said}");
    assert!(!run(&["create", "billing", "--token-issuer", &issuer]).0);
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_subject_is_nobody_once_the_operator_has_moved_its_issuer_to_another_tenant() {
    let gate = Trusting::sqlite();
    gate.world.admin().post("/api/v1/agents", &json!({"id": "billing"})).created();
    gate.register("billing", "workload-1");
    let bearer = gate.bearer("workload-1");
    assert_eq!(bearer.get("/api/v1/whoami").ok()["id"], "billing");
    let Trusting { world, issuer, .. } = gate;
    let setup = world.gate.setup().clone();
    world.stop();
    let moved = World::of(&trusting(setup, &issuer.url(), PUBLIC_URL, "tenant = \"acme\""), None);
    moved.actor("billing", &bearer.key).get("/api/v1/whoami").refused(401, "UNAUTHENTICATED");
}
