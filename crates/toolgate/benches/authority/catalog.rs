//! The catalog as one agent sees it, with as many tools registered as it may use and with ten thousand: what it may not
//! use must cost it nothing.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolgate_testkit::gate_process::GateProcess;

use crate::table::{median, micros, print, ratio};

/// How many tools the agent may use.
const OWN: usize = 20;
const LARGE: usize = 10_000;
/// The most that one service may have.
const TOOLS_OF_A_SERVICE: usize = 2000;
const SAMPLES: usize = 300;
const ROUNDS: usize = 4;

struct Catalog {
    gate: GateProcess,
    key: String,
}

pub fn run() {
    let (small, large) = (fill(OWN), fill(LARGE));
    let mut rows = Vec::new();
    let paths = [("list of its own", "/v1/tools".to_owned()), ("one by its id", format!("/v1/tools/{}", id(OWN / 2)))];
    for (what, path) in paths {
        // Interleaved, so that what else the machine does falls on both alike.
        let (mut few, mut many) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            few.push(measure(&small, &path));
            many.push(measure(&large, &path));
        }
        let (few, many) = (median(few), median(many));
        rows.push(vec![what.to_owned(), micros(few), micros(many), ratio(many, few)]);
    }
    let title = format!("Catalog of an agent with {OWN} tools, by tools registered (SQLite, median)");
    print(&title, &["", "20", "10,000", "ratio"], &rows);
}

fn id(number: usize) -> String {
    format!("connector%3Abench.tool{number:05}")
}

fn fill(count: usize) -> Catalog {
    let gate = GateProcess::start(env!("CARGO_BIN_EXE_toolgate"));
    let post = |path: &str, body: &Value| {
        let (status, answer) = gate.request("POST", path, Some(body));
        assert!(status < 300, "{status} {answer}");
        answer
    };
    // As many services as it takes; the agent's tools are all in the first.
    for (position, first) in (0..count).step_by(TOOLS_OF_A_SERVICE).enumerate() {
        let numbers = first..count.min(first + TOOLS_OF_A_SERVICE);
        let tools: Map<String, Value> = numbers.map(|number| (format!("tool{number:05}"), tool(number))).collect();
        let service = if position == 0 { "bench".to_owned() } else { format!("bench{position}") };
        let base_url = "https://bench.example";
        let definition = json!({"service": service, "version": "1", "base_url": base_url, "tools": tools});
        post("/api/v1/services", &definition);
    }
    post("/api/v1/agents", &json!({"id": "agent"}));
    let key = post("/api/v1/agents/agent/keys", &json!({}))["key"].as_str().unwrap().to_owned();
    let vault = post("/api/v1/vaults", &json!({"name": "bench"}))["id"].clone();
    let scopes: Vec<String> = (0..OWN).map(|number| format!("scope{number:05}")).collect();
    let credential = json!({
        "vault_id": vault, "service": "bench", "label": "bench", "auth_type": "bearer_token",
        "material": {"token": "not-a-real-token"}, "scopes_available": scopes,
    });
    let credential = post("/api/v1/credentials", &credential)["id"].clone();
    post("/api/v1/grants", &json!({"credential_id": credential, "agent_id": "agent", "scopes": scopes}));
    let (status, listed) = gate.request_as(&key, "GET", "/v1/tools", None);
    assert_eq!((status, listed.as_array().unwrap().len()), (200, OWN));
    Catalog { gate, key }
}

fn tool(number: usize) -> Value {
    json!({
        "scope": format!("scope{number:05}"), "description": "one of many",
        "parameters": {"type": "object", "properties": {"amount": {"type": "integer"}}},
        "http": {"method": "GET", "path": format!("/{number}")},
    })
}

fn measure(catalog: &Catalog, path: &str) -> Duration {
    let samples = (0..SAMPLES).map(|_| {
        let begun = Instant::now();
        let (status, _) = catalog.gate.request_as(&catalog.key, "GET", path, None);
        assert_eq!(status, 200);
        begun.elapsed()
    });
    median(samples.collect())
}
