//! Programs of somebody else, in Python and from their own reading of the specification: a guardian that does whatever
//! it is told, and the runtime of an agent that asks at every hook.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::openintent_sdk::python;
use crate::world::{Actor, send, until, unused_source};

/// A guardian in a process of its own.
pub struct ThirdParty {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl ThirdParty {
    /// One that follows these rules, and else allows.
    pub fn start(rules: Value) -> Self {
        Self::at(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0), rules)
    }

    /// One that can be started again where it was: at an address that no other test uses.
    pub fn restartable(rules: Value) -> Self {
        Self::at(SocketAddr::new(unused_source(), 0), rules)
    }

    fn at(address: SocketAddr, rules: Value) -> Self {
        let folder = TempDir::with_prefix("toolgate-guardian-").unwrap();
        let (child, address) = launch(address, folder.path(), &rules);
        Self { child, address, folder }
    }

    /// Where it is asked.
    pub fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    /// Gives it other rules.
    pub fn follow(&self, rules: &Value) {
        self.control("POST", "/control/rules", rules);
    }

    /// Lets it answer what it holds.
    pub fn release(&self) {
        self.control("POST", "/control/release", &json!({}));
    }

    /// Waits until it holds so many questions.
    pub fn wait_until_it_holds(&self, count: u64) {
        until("questions that are held", || (self.state("held") >= count).then_some(()));
    }

    /// Waits until it has answered, or tried to answer, so many questions.
    pub fn wait_until_it_answered(&self, count: u64) {
        until("answers", || (self.state("answered") >= count).then_some(()));
    }

    /// Every question that it got, in order. Each must be right in its eyes.
    pub fn questions(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(log(self.folder.path())).unwrap();
        let questions: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for question in &questions {
            assert_eq!(question["violations"], json!([]), "by the specification: {question}");
        }
        questions
    }

    /// The questions about one method.
    pub fn asked_about(&self, method: &str) -> Vec<Value> {
        self.questions().into_iter().filter(|question| question["body"]["method"] == method).collect()
    }

    /// Waits for the end of its process.
    pub fn wait_for_its_end(&mut self) {
        assert_eq!(self.child.wait().unwrap().code(), Some(3));
    }

    /// Starts it again at the same address.
    pub fn start_again(&mut self, rules: &Value) {
        (self.child, self.address) = launch(self.address, self.folder.path(), rules);
    }

    fn state(&self, what: &str) -> u64 {
        self.control("GET", "/control/state", &Value::Null)[what].as_u64().unwrap()
    }

    fn control(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        send(self.address, method, path, &[], body.as_bytes()).ok()
    }
}

impl Drop for ThirdParty {
    fn drop(&mut self) {
        // Both fail only where the process is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the runtime of an agent went through: what it printed for each hook, and whether all of it was right.
pub struct Walked {
    pub lines: Vec<Value>,
    pub right: bool,
}

impl Walked {
    /// What it printed for this hook.
    #[track_caller]
    pub fn line(&self, hook: &str) -> &Value {
        let found = self.lines.iter().find(|line| line["hook"] == hook);
        found.unwrap_or_else(|| panic!("no {hook} in {:?}", self.lines))
    }
}

/// Lets an agent of somebody else ask the gate at this URL at its hooks, as `more` says.
pub fn walk(gate: &str, agent: &Actor, more: &[&str]) -> Walked {
    let output = Command::new(python())
        // Nothing of this machine: no proxies, no other packages.
        .env_clear()
        .env("AOS_KEY", &agent.key)
        .arg("-B")
        .arg(program("third_party_agent.py"))
        .args(["--url", &format!("{gate}/v1/hooks/aos"), "--agent", &agent.id])
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    Walked { lines, right: output.status.success() }
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/guardians").join(name)
}

fn log(folder: &Path) -> PathBuf {
    folder.join("questions.jsonl")
}

fn launch(address: SocketAddr, folder: &Path, rules: &Value) -> (Child, SocketAddr) {
    let mut child = Command::new(python())
        .env_clear()
        .arg("-B")
        .arg(program("third_party_guardian.py"))
        .args(["--address", &address.ip().to_string(), "--port", &address.port().to_string()])
        .args(["--rules", &rules.to_string(), "--log"])
        .arg(log(folder))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().parse().unwrap_or_else(|_| panic!("the guardian did not start: {line}"));
    (child, SocketAddr::new(address.ip(), port))
}
