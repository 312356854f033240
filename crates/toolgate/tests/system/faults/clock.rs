//! A clock that is set wrong for a while.

use serde_json::json;

use super::{Bystander, Engine, Shim, Word, fault};
use crate::world::{Reply, until};

fault! {
    a_clock_that_jumps_for_a_moment_ends_nothing_for_good,
}

const FORTY_DAYS: i64 = 40 * 24 * 3600;

fn a_clock_that_jumps_for_a_moment_ends_nothing_for_good(engine: Engine) {
    let shim = Shim::new();
    let world = engine.world(|setup| shim.loaded_into(setup));
    let mut bystander = Bystander::of(&world);
    let admin = world.admin();
    let end = admin.time().plus(std::time::Duration::from_secs(24 * 3600));
    let more = json!({"expires_at": end, "scopes": ["any"]});
    let credential = bystander.user.admin.grant(&json!({"id": bystander.user.grant}))["credential_id"].clone();
    let ending = admin.grants(credential.as_str().unwrap(), &bystander.user.agent.id, more);
    bystander.is_served();
    for offset in [FORTY_DAYS, -FORTY_DAYS] {
        // While it is wrong, probes and metrics say so, and what has ended by it is refused at use.
        shim.set(Word::ClockOffset, offset);
        until("the step was seen", || {
            let ready = world.gate.request("GET", "/readyz", None).1;
            (ready["clock"]["status"] == "stepped").then_some(())
        });
        let metrics = world.gate.try_request_as(world.gate.token(), "GET", "/metrics", None).unwrap().text();
        assert!(metrics.contains("toolgate_clock_stepped 1"), "{metrics}");
        assert_eq!(world.gate.request("GET", "/healthz", None).0, 200);
        if offset > 0 {
            let call = json!({"tool": "service.any", "grant_id": ending["id"], "parameters": {}});
            bystander.user.agent.post("/api/v1/tools/invoke", &call).refused(403, "GRANT_EXPIRED");
            world.actor("nobody", "an-invented-key").get("/api/v1/whoami").refused(401, "UNAUTHENTICATED");
        }
        // Sweeps come once a second, and so does the integration of events: this takes several of both.
        for _ in 0..4 {
            let size = || admin.get("/api/v1/audit/head").ok()["size"].as_u64().unwrap();
            let before = size();
            assert_eq!(super::makes_vault(&world.gate, "made meanwhile").0, 201);
            until("the event is integrated", || (size() > before).then_some(()));
        }
        // And when it is right again, nothing has ended.
        shim.set(Word::ClockOffset, 0);
        until("the clock is trusted again", || {
            let ready = world.gate.request("GET", "/readyz", None).1;
            (ready["clock"]["status"] == "ok").then_some(())
        });
        assert_eq!(admin.grant(&ending)["status"], "active", "offset {offset}");
        // Nor does anybody wait for the time that it showed: who was refused then may owe a moment of it.
        let seconds = |reply: &Reply| reply.error()["retry_after_seconds"].as_u64().unwrap();
        until("the agent is served", || {
            let reply = bystander.user.calls("any", json!({"number": "soon"}));
            assert!(reply.status() == 200 || seconds(&reply) <= 60, "{}", reply.answer.text());
            (reply.status() == 200).then_some(())
        });
        bystander.calls += 1;
        let late = world.actor("nobody", "another-invented-key").get("/api/v1/whoami");
        assert!(late.status() == 401 || seconds(&late) <= 60, "{}", late.answer.text());
    }
    assert_eq!(admin.events("&type=grant.expired"), Vec::<serde_json::Value>::new());
    bystander.has_lost_nothing();
}
