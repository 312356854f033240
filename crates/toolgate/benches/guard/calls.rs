//! Whole calls through gates with and without policies, each record on the disk before the answer leaves.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolgate_cli::starter_policies;
use toolgate_testkit::gate_process::{GateProcess, GateSetup};
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::rules::{ABOUT_THE_CALL, other_tools, set};
use crate::scene::{AGENT, arguments, parameters};
use crate::table::{median, micros, print, ratio};

const POLICIES: usize = 100;
const ROUNDS: usize = 10;
const SAMPLES: usize = 200;
/// In these Linux tells the processor time of a process.
const TICK: Duration = Duration::from_millis(10);

struct Subject {
    name: &'static str,
    gate: GateProcess,
    key: String,
    times: Vec<Duration>,
    processor: Duration,
    _bank: Upstream,
}

pub fn run() {
    let rules = set(&ABOUT_THE_CALL, POLICIES);
    let starter = starter_policies::FILES.iter().map(|(name, text)| json!({"name": name, "text": text})).collect();
    let mut subjects = [
        Subject::start("no policies", None),
        Subject::start("100 policies", Some(json!([{"name": rules.name, "text": rules.text}]))),
        Subject::start("the starter set", Some(starter)),
    ];
    // In turns, so that what else the machine does falls on all alike.
    for round in 0..=ROUNDS {
        for subject in &mut subjects {
            subject.sample();
            if round == 0 {
                subject.times.clear();
                subject.processor = Duration::ZERO;
            }
        }
    }
    let figures = subjects.map(|subject| {
        let processor = subject.processor.div_f64(subject.times.len() as f64);
        (subject.name, median(subject.times), processor)
    });
    let (_, least, least_processor) = figures[0];
    let row = |(name, time, processor): (&str, Duration, Duration)| {
        vec![name.to_owned(), micros(time), ratio(time, least), micros(processor), ratio(processor, least_processor)]
    };
    let rows: Vec<Vec<String>> = figures.into_iter().map(row).collect();
    let head = ["", "median", "beside none", "processor time of the gate", "beside none"];
    print("A call through the gate, on SQLite", &head, &rows);
}

impl Subject {
    fn start(name: &'static str, policies: Option<Value>) -> Self {
        let bank = Upstream::start(|_| Reply::json(200, json!({"paid": true})));
        let gate = GateSetup::new(env!("CARGO_BIN_EXE_toolgate")).reaching_loopback().start();
        let ask = |method: &str, path: &str, body: &Value| {
            let (status, answer) = gate.request(method, path, Some(body));
            assert!(status < 300, "{method} {path}: {status} {answer}");
            answer
        };
        let tool = |path: &str| json!({"http": {"method": "POST", "path": path}, "safety_tier": "write"});
        let mut pay = tool("/pay");
        pay["parameters"] = parameters();
        pay["labels"] = json!(["money"]);
        let others: Map<String, Value> = other_tools(POLICIES).map(|name| (name, tool("/other"))).collect();
        ask("POST", "/api/v1/services", &json!({"service": "bank", "version": "1", "tools": {"pay": pay}}));
        ask("POST", "/api/v1/services", &json!({"service": "other", "version": "1", "tools": others}));
        ask("POST", "/api/v1/agents", &json!({"id": AGENT, "labels": ["untrusted"]}));
        let key = ask("POST", &format!("/api/v1/agents/{AGENT}/keys"), &json!({}))["key"].as_str().unwrap().to_owned();
        let vault = ask("POST", "/api/v1/vaults", &json!({"name": "bench"}))["id"].clone();
        let credential = json!({
            "vault_id": vault, "service": "bank", "label": "bank", "auth_type": "bearer_token",
            "material": {"token": "not-a-real-token"}, "scopes_available": ["pay"], "metadata": {"base_url": bank.url()},
        });
        let credential = ask("POST", "/api/v1/credentials", &credential)["id"].clone();
        ask("POST", "/api/v1/grants", &json!({"credential_id": credential, "agent_id": AGENT, "scopes": ["pay"]}));
        if let Some(files) = policies {
            ask("PUT", "/api/v1/policies", &json!({"files": files}));
        }
        Self { name, gate, key, times: Vec::new(), processor: Duration::ZERO, _bank: bank }
    }

    fn sample(&mut self) {
        let call = json!({"tool": "bank.pay", "parameters": arguments()});
        let before = self.processor_time();
        for _ in 0..SAMPLES {
            let begun = Instant::now();
            let (status, answer) = self.gate.request_as(&self.key, "POST", "/api/v1/tools/invoke", Some(&call));
            assert_eq!(status, 200, "{answer}");
            self.times.push(begun.elapsed());
        }
        self.processor += self.processor_time() - before;
    }

    /// User and system time of the gate since it was started: the 14th and the 15th field, of which the second is the
    /// program's name in parentheses.
    fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.gate.id())).unwrap();
        let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11);
        TICK * fields.take(2).map(|field| field.parse::<u32>().unwrap()).sum()
    }
}
