//! The official Python client of OpenIntent, unmodified, as people install it: it makes vaults, credentials and grants,
//! reads them back and revokes them, calls tools, reads their history, and understands our refusals.

use std::path::{Path, PathBuf};
use std::process::Command;

use toolgate_testkit::upstream::Upstream;

use crate::world::{World, on_both_engines};

on_both_engines! {
    also_behind_nginx:
    the_official_client_works_unmodified,
}

fn the_official_client_works_unmodified(world: &World) {
    let worker = world.agent("agent_worker_01", &["tools.invoke"]);
    let service = Upstream::payments();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/openintent_client.py");
    let output = Command::new(python())
        // Nothing of this machine: no proxies, no other packages.
        .env_clear()
        .env("TOOLGATE_URL", format!("http://{}", world.address()))
        .env("ADMIN_KEY", world.gate.token())
        .env("WORKER_KEY", &worker.key)
        .env("SERVICE_URL", service.url())
        .arg("-B")
        .arg(script)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}", output.status);
    assert!(service.received().iter().all(|request| request.bearer() == Some("sk_live_of_the_python_client")));
    assert!(said.contains("OpenIntentClient: done") && said.contains("AsyncOpenIntentClient: done"), "{said}");
}

/// The Python that `cargo xtask test` has given the client, and schemathesis.
pub fn python() -> PathBuf {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    let python = std::env::var_os("TOOLGATE_TEST_PYTHON").map_or(usual, PathBuf::from);
    assert!(
        python.exists(),
        "the Python packages of the tests are not installed: run cargo xtask test, which does that"
    );
    python
}
