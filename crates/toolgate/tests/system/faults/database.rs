//! PostgreSQL that stops moving as a whole; the tests of `database_down.rs` stop it, and single connections of it.

use std::time::Duration;

use serde_json::json;
use toolgate_testkit::gate_process::signal;
use toolgate_testkit::postgres::{Durability, PrivateCluster};

use super::Bystander;
use crate::world::{World, block_on, setup, until};

#[test]
#[ignore = "cargo xtask faults runs it"]
fn a_server_that_hangs_as_a_whole_is_refused_for_in_time_and_found_again() {
    let cluster = PrivateCluster::create(Durability::Disk).unwrap();
    let setup = setup().reaching_loopback().database(&cluster.url());
    let world = World::of(&setup.environment("TOOLGATE_LEDGER_TIMEOUT_SECONDS", "1"), None);
    let mut bystander = Bystander::of(&world);
    bystander.is_served();
    let admin = world.admin();
    // When nothing of it moves, new connections included.
    let processes = processes(&cluster.url());
    processes.iter().for_each(|process| signal("STOP", *process));
    let hanging = Hanging(&processes);
    // Then every request gets its response, within seconds.
    for _ in 0..5 {
        super::within(Duration::from_secs(20), "a probe, a change and a call", || {
            assert_eq!(admin.get("/healthz").status(), 200);
            assert_eq!(admin.get("/readyz").status(), 503);
            admin.post("/api/v1/vaults", &json!({"name": "refused"})).refused(503, "LEDGER_UNAVAILABLE");
            bystander.is_refused(503, "LEDGER_UNAVAILABLE");
        });
    }
    // And when it moves again, so does the gate.
    drop(hanging);
    until("the gate is ready again", || (world.gate.request("GET", "/readyz", None).0 == 200).then_some(()));
    bystander.is_served();
    bystander.has_lost_nothing();
}

/// Processes that go on when this is dropped: a stopped server could not be ended.
struct Hanging<'a>(&'a [u32]);

impl Drop for Hanging<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|process| signal("CONT", *process));
    }
}

/// The processes of a server: that which accepts connections first, then those of connections.
fn processes(url: &str) -> Vec<u32> {
    block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql = "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int4 AS pid UNION ALL \
                   SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let rows = client.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| u32::try_from(row.get::<_, i32>(0)).unwrap()).collect()
    })
}
