//! The master key changes while the gate runs, and a kill at any point of it harms nothing.

use serde_json::{Value, json};
use toolgate_testkit::gate_process::{GateProcess, GateSetup};
use toolgate_testkit::postgres::TestDatabase;

const CREDENTIALS: usize = 60;

#[test]
fn a_rekey_that_is_killed_again_and_again_ends_with_every_secret_intact_on_sqlite() {
    survive_kills(&GateSetup::new(env!("CARGO_BIN_EXE_toolgate")));
}

#[tokio::test]
async fn a_rekey_that_is_killed_again_and_again_ends_with_every_secret_intact_on_postgresql() {
    let database = TestDatabase::create().await;
    let setup = GateSetup::new(env!("CARGO_BIN_EXE_toolgate")).database(database.url());
    tokio::task::spawn_blocking(move || survive_kills(&setup)).await.unwrap();
}

fn survive_kills(setup: &GateSetup) {
    // Given credentials under a first master key.
    let mut gate = setup.start();
    let (_, vault) = gate.request("POST", "/api/v1/vaults", Some(&json!({"name": "kept"})));
    let credentials: Vec<String> = (0..CREDENTIALS).map(|number| create(&gate, &vault["id"], number)).collect();
    let before = status(&gate)["current"].clone();

    // When a rekey is begun, and the gate is killed after ever more of it.
    let (code, _) = gate.request("POST", "/api/v1/master-keys/rekey", None);
    assert_eq!(code, 202);
    for timeout in 0..8 {
        for _ in 0..timeout {
            status(&gate);
        }
        gate.kill();
        gate = setup.start();
    }

    // Then it ends by itself, everything is under the new key, and opens.
    let done = (0..20_000).map(|_| status(&gate)).find(|status| retired(status, &before));
    let done = done.expect("the rekey goes on after a restart until the old key is retired");
    assert_ne!(done["current"], before);
    assert_eq!(done["remaining"], 0);
    for id in &credentials {
        let (code, answer) = gate.request("POST", &format!("/api/v1/credentials/{id}/verify"), None);
        assert_eq!((code, answer["material"].as_str()), (200, Some("intact")), "{answer}");
    }
    // And the old key is gone from the key file, yet a start without it works.
    gate.kill();
    let gate = setup.start();
    let keys = std::fs::read_to_string(setup.configuration_home().join("master.key")).unwrap();
    assert!(!keys.contains(before.as_str().unwrap()), "the old key is forgotten");
    assert_eq!(gate.request("POST", &format!("/api/v1/credentials/{}/verify", credentials[0]), None).0, 200);
}

#[test]
fn a_damaged_credential_is_told_apart_and_the_others_stay_usable() {
    // Given two credentials, of which one is damaged in the ledger.
    let setup = GateSetup::new(env!("CARGO_BIN_EXE_toolgate"));
    let gate = setup.start();
    let (_, vault) = gate.request("POST", "/api/v1/vaults", Some(&json!({"name": "kept"})));
    let (damaged, whole) = (create(&gate, &vault["id"], 1), create(&gate, &vault["id"], 2));
    gate.stop();
    let ledger = rusqlite::Connection::open(setup.data().join("ledger.sqlite3")).unwrap();
    let sql = "UPDATE credential_versions SET ciphertext = zeroblob(length(ciphertext)) WHERE credential = ?1";
    assert_eq!(ledger.execute(sql, [&damaged]).unwrap(), 1);
    drop(ledger);

    // When both are looked at, then only the damaged one is refused, with what to do.
    let gate = setup.start();
    let (code, answer) = gate.request("POST", &format!("/api/v1/credentials/{damaged}/verify"), None);
    assert_eq!((code, answer["error"]["code"].as_str()), (409, Some("CREDENTIAL_DAMAGED")), "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("rotate the credential"), "{answer}");
    assert_eq!(gate.request("POST", &format!("/api/v1/credentials/{whole}/verify"), None).0, 200);

    // And fresh material mends it.
    let fresh = json!({"material": {"api_key": "sk_live_fresh"}});
    assert_eq!(gate.request("PATCH", &format!("/api/v1/credentials/{damaged}/rotate"), Some(&fresh)).0, 200);
    assert_eq!(gate.request("POST", &format!("/api/v1/credentials/{damaged}/verify"), None).0, 200);
}

fn create(gate: &GateProcess, vault: &Value, number: usize) -> String {
    let body = json!({"vault_id": vault, "service": "stripe", "label": format!("key {number}"),
        "material": {"api_key": format!("sk_live_{number:08}")}});
    let (status, credential) = gate.request("POST", "/api/v1/credentials", Some(&body));
    assert_eq!(status, 201, "{credential}");
    credential["id"].as_str().unwrap().to_owned()
}

fn status(gate: &GateProcess) -> Value {
    let (status, answer) = gate.request("GET", "/api/v1/master-keys", None);
    assert_eq!(status, 200, "{answer}");
    answer
}

fn retired(status: &Value, key: &Value) -> bool {
    let usage = status["keys"].as_array().unwrap().iter().find(|usage| usage["key_id"] == *key);
    usage.is_some_and(|usage| !usage["retired_at"].is_null())
}
