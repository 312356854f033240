//! Killed at any moment, the gate has lost nothing that it acknowledged, holds nothing half done, and its log verifies.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};

use serde_json::{Value, json};
use toolgate_model::audit_export;
use toolgate_model::checkpoint::PublicKey;
use toolgate_testkit::gate_process::{ADMIN_TOKEN, GateProcess, GateSetup, request};
use toolgate_testkit::postgres::TestDatabase;

const ROUNDS: u64 = 50;
const WRITERS: u64 = 6;

#[test]
fn fifty_kills_lose_nothing_on_sqlite() {
    survive_kills(&GateSetup::new(env!("CARGO_BIN_EXE_toolgate")));
}

#[tokio::test]
async fn fifty_kills_lose_nothing_on_postgresql() {
    let database = TestDatabase::create().await;
    let setup = GateSetup::new(env!("CARGO_BIN_EXE_toolgate")).database(database.url());
    tokio::task::spawn_blocking(move || survive_kills(&setup)).await.unwrap();
}

/// What a client was told, or may have missed being told.
enum Told {
    Vault(String),
    Grant { id: String, source: Option<String> },
    Revoked(String),
}

#[derive(Default)]
struct Acknowledged {
    vaults: BTreeSet<String>,
    grants: BTreeMap<String, Option<String>>,
    revoked: BTreeSet<String>,
}

fn survive_kills(setup: &GateSetup) {
    let mut acknowledged = Acknowledged::default();
    let mut random = Random(0x5eed);
    let credential = {
        let gate = setup.start();
        let (_, vault) = gate.request("POST", "/api/v1/vaults", Some(&json!({"name": "kept"})));
        acknowledged.vaults.insert(text(&vault["id"]));
        let body = json!({"vault_id": vault["id"], "service": "stripe", "label": "kept", "scopes_available": ["read"],
            "material": {"api_key": "sk_live_of_the_crash_test"}});
        let (status, credential) = gate.request("POST", "/api/v1/credentials", Some(&body));
        assert_eq!(status, 201, "{credential}");
        text(&credential["id"])
    };
    for round in 0..ROUNDS {
        let gate = setup.start();
        let (told, hears) = channel();
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let (told, credential, address) = (told.clone(), credential.clone(), gate.address());
                let seed = Random(round * 1000 + number + 1);
                std::thread::spawn(move || write(address, &credential, seed, &told))
            })
            .collect();
        drop(told);
        let enough = 1 + random.below(40);
        let mut heard = 0;
        while heard < enough && hears.recv().map(|told| acknowledged.note(told)).is_ok() {
            heard += 1;
        }
        gate.kill();
        hears.iter().for_each(|told| acknowledged.note(told));
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        acknowledged.check(&setup.start(), round);
    }
}

impl Acknowledged {
    fn note(&mut self, told: Told) {
        match told {
            Told::Vault(id) => drop(self.vaults.insert(id)),
            Told::Grant { id, source } => drop(self.grants.insert(id, source)),
            Told::Revoked(id) => drop(self.revoked.insert(id)),
        }
    }

    fn check(&self, gate: &GateProcess, round: u64) {
        let vaults: BTreeSet<String> = all(gate, "vaults").iter().map(|vault| text(&vault["id"])).collect();
        let grants: BTreeMap<String, Value> =
            all(gate, "grants").into_iter().map(|grant| (text(&grant["id"]), grant)).collect();
        // Nothing acknowledged is missing.
        assert!(self.vaults.is_subset(&vaults), "round {round}: an acknowledged vault is missing");
        for (id, source) in &self.grants {
            let grant = grants.get(id).unwrap_or_else(|| panic!("round {round}: acknowledged grant {id} is missing"));
            assert_eq!(grant["source_grant_id"], json!(source), "round {round}");
        }
        for id in &self.revoked {
            assert_eq!(grants[id]["status"], "revoked", "round {round}: the revocation of {id} is missing");
        }
        // Nothing is half done: below a revoked grant everything is revoked, and objects and events tell the same.
        for grant in grants.values() {
            if let Some(source) = grant["source_grant_id"].as_str() {
                let above = grants[source]["status"] == "revoked";
                assert!(!above || grant["status"] == "revoked", "round {round}: {} outlived its source", grant["id"]);
            }
        }
        let events = verified_events(gate);
        let named = |kinds: &[&str], field: &str| -> Vec<String> {
            let fitting = events.iter().filter(|event| kinds.contains(&event["type"].as_str().unwrap()));
            fitting.map(|event| text(&event["data"][field])).collect()
        };
        let made = once_each(named(&["grant.created", "grant.delegated"], "grant_id"), round);
        assert_eq!(made, grants.keys().cloned().collect(), "round {round}: grants and their events differ");
        let ended = once_each(named(&["grant.revoked"], "grant_id"), round);
        let revoked =
            grants.iter().filter(|(_, grant)| grant["status"] == "revoked").map(|(id, _)| id.clone()).collect();
        assert_eq!(ended, revoked, "round {round}: revocations and their events differ");
        assert_eq!(once_each(named(&["vault.created"], "vault_id"), round), vaults, "round {round}");
    }
}

fn write(address: SocketAddr, credential: &str, mut random: Random, told: &Sender<Told>) {
    let mut grants: Vec<String> = Vec::new();
    loop {
        let post = |path: &str, body: Value| ask(address, "POST", path, Some(&body));
        let done = match random.below(8) {
            0 => post("/api/v1/vaults", json!({"name": "crash"})).map(|vault| Told::Vault(text(&vault["id"]))),
            1 | 2 => post(
                "/api/v1/grants",
                json!({"credential_id": credential, "agent_id": "worker", "scopes": ["read"], "delegatable": true,
                    "delegation_depth": null}),
            )
            .map(|grant| Told::Grant { id: text(&grant["id"]), source: None }),
            3 if !grants.is_empty() => {
                let id = random.pick(&grants);
                ask(address, "DELETE", &format!("/api/v1/grants/{id}"), None).map(|_| Told::Revoked(id))
            }
            _ if !grants.is_empty() => {
                let source = random.pick(&grants);
                let body = json!({"target_agent_id": "helper", "scopes": ["read"]});
                match ask(address, "POST", &format!("/api/v1/grants/{source}/delegate"), Some(&body)) {
                    // Revoked by this writer before.
                    Some(answer) if answer["status"] == "denied" => continue,
                    answer => answer.map(|grant| Told::Grant { id: text(&grant["id"]), source: Some(source) }),
                }
            }
            _ => continue,
        };
        let Some(done) = done else { return };
        if let Told::Grant { id, .. } = &done {
            grants.push(id.clone());
        }
        if told.send(done).is_err() {
            return;
        }
    }
}

/// The answer; `None` once the gate is gone.
fn ask(address: SocketAddr, method: &str, path: &str, body: Option<&Value>) -> Option<Value> {
    let answer = request(address, ADMIN_TOKEN, method, path, body).ok()?;
    Some(answer.json())
}

fn all(gate: &GateProcess, noun: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let (status, page) = gate.request("GET", &format!("/api/v1/{noun}?limit=1000{cursor}"), None);
        assert_eq!(status, 200, "{page}");
        found.extend(page[noun].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

fn verified_events(gate: &GateProcess) -> Vec<Value> {
    let (_, head) = gate.request("GET", "/api/v1/audit/head", None);
    let key = PublicKey::parse(head["public_key"].as_str().unwrap()).unwrap();
    let export = gate.try_request_as(gate.token(), "GET", "/api/v1/audit/export", None).unwrap();
    audit_export::verify(export.body.as_slice(), &key).unwrap();
    let lines = export.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let values = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    values.filter(|value| value.get("type").is_some()).collect()
}

fn once_each(ids: Vec<String>, round: u64) -> BTreeSet<String> {
    let count = ids.len();
    let set: BTreeSet<String> = ids.into_iter().collect();
    assert_eq!(set.len(), count, "round {round}: something was recorded twice");
    set
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text, and got {value}")).to_owned()
}

/// A small generator: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) % limit
    }

    fn pick(&mut self, from: &[String]) -> String {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()].clone()
    }
}
