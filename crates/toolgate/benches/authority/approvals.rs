//! Calls that need nobody, beside none and beside ten thousand calls that wait for a person: whoever waits must cost the
//! others nothing.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_testkit::gate_process::{GateProcess, GateSetup};
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::table::{median, micros, print, ratio};

const WAITING: usize = 10_000;
/// One agent may have two thousand calls waiting.
const AGENTS: usize = 8;
const SAMPLES: usize = 300;
const ROUNDS: usize = 5;

struct Bench {
    gate: GateProcess,
    key: String,
    _upstream: Upstream,
}

pub fn run() {
    let (quiet, busy) = (start(), start());
    let waiting = fill(&busy);
    let mut rows = Vec::new();
    // Interleaved, so that what else the machine does falls on both alike.
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        few.push(measure(&quiet));
        many.push(measure(&busy));
    }
    let (few, many) = (median(few), median(many));
    rows.push(vec!["a call that needs nobody".to_owned(), micros(few), micros(many), ratio(many, few)]);
    print("Calls beside calls that wait for a person (SQLite, median)", &["", "0", "10,000", "ratio"], &rows);
    println!("Waiting all the time: {}; resident: {} and {} MB", waiting.len(), resident(&quiet), resident(&busy));
}

fn start() -> Bench {
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let gate = GateSetup::new(env!("CARGO_BIN_EXE_toolgate"))
        .reaching_loopback()
        .environment("TOOLGATE_MAX_CONNECTIONS", "16000")
        .environment("TOOLGATE_APPROVALS_WAIT_SECONDS", "3600")
        .start();
    let post = |path: &str, body: &Value| {
        let (status, answer) = gate.request("POST", path, Some(body));
        assert!(status < 300, "{status} {answer}");
        answer
    };
    post("/api/v1/agents", &json!({"id": "agent"}));
    let key = post("/api/v1/agents/agent/keys", &json!({}))["key"].as_str().unwrap().to_owned();
    let vault = post("/api/v1/vaults", &json!({"name": "bench"}))["id"].clone();
    let credential = json!({
        "vault_id": vault, "service": "bench", "label": "bench", "auth_type": "bearer_token",
        "material": {"token": "not-a-real-token"}, "scopes_available": ["any"],
        "metadata": {"base_url": upstream.url()},
    });
    let credential = post("/api/v1/credentials", &credential)["id"].clone();
    post("/api/v1/grants", &json!({"credential_id": credential, "agent_id": "agent", "scopes": ["any"]}));
    Bench { gate, key, _upstream: upstream }
}

/// Ten thousand connections, each with a call that waits.
fn fill(bench: &Bench) -> Vec<TcpStream> {
    let keys: Vec<String> = (0..AGENTS)
        .map(|number| {
            let id = format!("waiting-{number}");
            bench.gate.request("POST", "/api/v1/agents", Some(&json!({"id": id})));
            let (_, made) = bench.gate.request("POST", &format!("/api/v1/agents/{id}/keys"), Some(&json!({})));
            made["key"].as_str().unwrap().to_owned()
        })
        .collect();
    let body = json!({"tool": "bench.Bash", "category": "exec", "arguments": {"command": "make"}}).to_string();
    let waiting: Vec<TcpStream> = (0..WAITING)
        .map(|number| {
            let mut stream = TcpStream::connect(bench.gate.address()).unwrap();
            let request = format!(
                "POST /api/v1/approvals/ask HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {}\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                keys[number % AGENTS],
                body.len()
            );
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    while pending(bench) < WAITING {}
    waiting
}

fn pending(bench: &Bench) -> usize {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let path = format!("/api/v1/approvals?status=pending&limit=1000{cursor}");
        let (status, page) = bench.gate.request("GET", &path, None);
        assert_eq!(status, 200, "{page}");
        count += page["approvals"].as_array().unwrap().len();
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return count,
        }
    }
}

fn measure(bench: &Bench) -> Duration {
    let call = json!({"tool": "bench.any", "parameters": {}});
    let samples = (0..SAMPLES).map(|_| {
        let begun = Instant::now();
        let (status, answer) = bench.gate.request_as(&bench.key, "POST", "/api/v1/tools/invoke", Some(&call));
        assert_eq!(status, 200, "{answer}");
        begun.elapsed()
    });
    median(samples.collect())
}

/// The memory that the gate takes, in megabytes.
fn resident(bench: &Bench) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", bench.gate.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().split(' ').next().and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or(0) / 1024
}
