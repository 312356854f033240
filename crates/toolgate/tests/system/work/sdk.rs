//! The official Python client of OpenIntent, unmodified, works with intents, leases, tasks, plans, coordinators and costs.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use toolgate_testkit::upstream::Upstream;

use crate::calls::shop::payments;
use crate::openintent_sdk::python;
use crate::world::{World, merged, on_both_engines};

on_both_engines! {
    the_official_client_coordinates_work_unmodified,
}

fn the_official_client_coordinates_work_unmodified(world: &World) {
    let lead = world.agent("lead", &["tools.invoke", "tools.delegate"]);
    let worker = world.agent("agent_worker_01", &["tools.invoke"]);
    let service = Upstream::payments();
    for kind in ["OpenIntentClient", "AsyncOpenIntentClient"] {
        let named = json!({"service": format!("payments-of-{kind}")});
        world.admin().post("/api/v1/services", &merged(payments("2024-01"), named)).created();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/openintent_work.py");
    let output = Command::new(python())
        // Nothing of this machine: no proxies, no other packages.
        .env_clear()
        .env("TOOLGATE_URL", format!("http://{}", world.address()))
        .env("ADMIN_KEY", world.gate.token())
        .env("LEAD_KEY", &lead.key)
        .env("WORKER_KEY", &worker.key)
        .env("SERVICE_URL", service.url())
        .arg("-B")
        .arg(script)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}", output.status);
    assert!(said.contains("OpenIntentClient: done") && said.contains("AsyncOpenIntentClient: done"), "{said}");
    assert_eq!(service.count(), 2, "one call by each client");
}
