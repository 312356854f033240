//! The disk below the ledger: full, failing, gone.

use serde_json::json;
use toolgate_testkit::gate_process::GateProcess;

use super::{Bystander, Engine, Shim, Word, fault, makes_vault, vaults};
use crate::world::{World, block_on, until};

fault! {
    a_disk_that_fails_refuses_changes_and_loses_nothing,
}

/// PostgreSQL tells of its disk, and of its file system, by an error of the statement.
#[test]
#[ignore = "cargo xtask faults runs it"]
fn a_full_disk_of_postgresql_refuses_changes_loses_nothing_and_recovers() {
    let world = Engine::Postgres.world(|setup| setup);
    let full = || execute(&world, &trigger("53100", "could not extend file: No space left on device"));
    survives(&world, full, || execute(&world, UNTRIGGER));
}

fn a_disk_that_fails_refuses_changes_and_loses_nothing(engine: Engine) {
    match engine {
        Engine::Sqlite => {
            let shim = Shim::new();
            let world = engine.world(|setup| shim.loaded_into(setup));
            survives(&world, || shim.set(Word::SyncFails, 1), || shim.set(Word::SyncFails, 0));
        }
        Engine::Postgres => {
            let world = engine.world(|setup| setup);
            let fails = || execute(&world, &trigger("58030", "could not read block 0: Input/output error"));
            survives(&world, fails, || execute(&world, UNTRIGGER));
        }
    }
}

#[test]
#[ignore = "cargo xtask faults runs it"]
fn a_database_that_was_dropped_is_not_begun_anew() {
    let world = Engine::Postgres.world(|setup| setup);
    assert_eq!(makes_vault(&world.gate, "kept").0, 201);
    let url = world.database().unwrap();
    let (server, name) = url.rsplit_once('/').unwrap();
    statement(&format!("{server}/postgres"), &format!("DROP DATABASE {name} WITH (FORCE)"));
    for _ in 0..20 {
        let (status, body) = makes_vault(&world.gate, "lost");
        assert_eq!((status, &body["error"]["code"]), (503, &json!("LEDGER_UNAVAILABLE")), "{body}");
    }
    assert_eq!(world.gate.request("GET", "/readyz", None).0, 503);
    assert_eq!(world.gate.request("GET", "/healthz", None).0, 200);
    // Nor does it write into an empty one that took its place.
    statement(&format!("{server}/postgres"), &format!("CREATE DATABASE {name}"));
    for _ in 0..20 {
        assert_eq!(makes_vault(&world.gate, "lost").0, 503);
    }
}

/// Makes changes while the ledger cannot take them; they are refused, and after that everything goes on.
fn survives(world: &World, begins: impl Fn(), ends: impl Fn()) {
    let mut bystander = Bystander::of(world);
    bystander.is_served();
    assert_eq!(makes_vault(&world.gate, "before").0, 201);
    let before = vaults(&world.gate);
    for _ in 0..3 {
        begins();
        for _ in 0..5 {
            let (status, body) = makes_vault(&world.gate, "refused");
            assert_eq!((status, &body["error"]["code"]), (503, &json!("LEDGER_UNAVAILABLE")), "{body}");
            bystander.is_refused(503, "LEDGER_UNAVAILABLE");
        }
        assert_eq!(vaults(&world.gate), before, "what is there can be read");
        assert_eq!(world.gate.request("GET", "/healthz", None).0, 200);
        until("the probe has noticed", || (ready(&world.gate) == 503).then_some(()));
        ends();
        until("the gate is ready again", || (ready(&world.gate) == 200).then_some(()));
        bystander.is_served();
    }
    assert_eq!(vaults(&world.gate), before, "nothing that was refused is there");
    bystander.has_lost_nothing();
}

fn ready(gate: &GateProcess) -> u16 {
    gate.request("GET", "/readyz", None).0
}

const UNTRIGGER: &str = "DROP FUNCTION fault() CASCADE";

/// Refuses every write of an event and every probe of the ledger, as PostgreSQL does with this state.
fn trigger(state: &str, message: &str) -> String {
    let tables = ["events", "settings"];
    let each = tables.map(|table| {
        format!(
            "CREATE TRIGGER fault_{table} BEFORE INSERT OR UPDATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION fault();"
        )
    });
    format!(
        "CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS \
         $$BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = '{state}'; END$$; {}",
        each.join(" ")
    )
}

fn execute(world: &World, sql: &str) {
    statement(world.database().expect("PostgreSQL"), sql);
}

fn statement(url: &str, sql: &str) {
    block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
    });
}
