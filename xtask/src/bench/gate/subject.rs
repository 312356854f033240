//! A gate in its own process with everything that a governed call needs: an agent with a key, a service with a schema,
//! a sealed credential, a grant with constraints, and as many other grants as wanted.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ChildStdout;
use std::rc::Rc;
use std::time::Duration;

use super::api::{Api, field};
use super::load::{Figures, Request, Target};
use super::programs::{self, Process};
use super::scratch::Scratch;
use super::store::Store;
use super::upstream::{self, Upstream};
use super::usage::{self, Ticks};

/// The parameters of a tool call; a direct call has the same.
pub const PARAMETERS: &str = r#"{"amount":1999,"currency":"usd","note":"one of many calls"}"#;

/// Every background task has run once after this time.
const SETTLE: Duration = Duration::from_secs(2);

pub const ADMINISTRATOR: &str = "token-of-the-benchmark-administrator";

/// A store with everything that a governed call needs, and the key of the agent that calls. No gate runs on it yet.
#[derive(Debug)]
pub struct Prepared<'a> {
    scratch: &'a Scratch,
    name: String,
    store: Store,
    key: String,
    /// Variables that the gate has besides those that every gate has.
    environment: Vec<(&'static str, OsString)>,
}

/// A running gate, and the number of calls made through it.
#[derive(Debug)]
pub struct Subject {
    gate: Gate,
    store: Store,
    key: String,
    /// The call over HTTP.
    target: Rc<Target>,
    answered: u64,
    /// The number of calls that may have been in flight when a load ended.
    unanswered: u64,
    /// Resident memory before the first call, in megabytes.
    idle: f64,
    /// Size of the store before the first call.
    bytes: u64,
}

/// The footprint of a stopped gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Footprint {
    /// Resident memory before the first call, in megabytes.
    pub idle: f64,
    /// Resident memory after all calls, in megabytes.
    pub loaded: f64,
    /// Calls that the figures belong to.
    pub calls: u64,
    /// Growth of the store per call, in bytes.
    pub bytes_per_call: f64,
}

/// One load on a gate.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub figures: Figures,
    /// User and system time of the gate for one call, in microseconds.
    pub processor: f64,
}

impl<'a> Prepared<'a> {
    /// Prepares a store for the gate `binary`, with this many grants.
    pub fn make(
        binary: &Path,
        scratch: &'a Scratch,
        name: &str,
        store: Store,
        upstream: &Upstream,
        grants: u64,
    ) -> Result<Self, String> {
        let gate = Gate::start(&[binary.into()], &scratch.path().join(name), &store, &[])?;
        let key = populate(gate.address, &upstream.url())?;
        gate.stop()?;
        store.multiply_grant(grants)?;
        Ok(Self { scratch, name: name.to_owned(), store, key, environment: Vec::new() })
    }

    /// Starts the gate with these variables too.
    pub fn with_environment(self, environment: Vec<(&'static str, OsString)>) -> Self {
        Self { environment, ..self }
    }

    /// Starts the gate with this command, which ends with the path of the binary, and makes one call.
    pub fn start(self, command: &[OsString]) -> Result<Subject, String> {
        let Self { scratch, name, store, key, environment } = self;
        let bytes = store.bytes()?;
        let gate = Gate::start(command, &scratch.path().join(&name), &store, &environment)?;
        programs::pause(SETTLE);
        let idle = usage::resident(gate.process.id())?;
        let body = format!(r#"{{"tool":"bench.echo","parameters":{PARAMETERS}}}"#);
        let path = "/api/v1/tools/invoke";
        let result = Api { address: gate.address, key: &key }.post(path, &body)?;
        if !result.contains(upstream::MARK) {
            return Err(format!("the result of a call does not hold what the service returned: {result}"));
        }
        let request = Request::new(format!("http://{}{path}", gate.address), Some(&key), &body);
        let target = Rc::new(Target::new(scratch, &name, &request)?);
        Ok(Subject { gate, store, key, target, answered: 1, unanswered: 0, idle, bytes })
    }
}

impl Subject {
    /// Requests to it with the key of the agent.
    pub fn as_agent(&self) -> Api<'_> {
        Api { address: self.gate.address, key: &self.key }
    }

    /// The same with that of the administrator.
    pub fn as_administrator(&self) -> Api<'static> {
        Api { address: self.gate.address, key: ADMINISTRATOR }
    }

    /// The call over HTTP.
    pub fn target(&self) -> Rc<Target> {
        Rc::clone(&self.target)
    }

    /// Counts this many successful calls that were made through [`Subject::as_agent`].
    pub fn note_calls(&mut self, calls: u64) {
        self.answered += calls;
    }

    /// Loads it with its call over HTTP, see [`Subject::measure_calls`].
    pub fn measure(&mut self, ticks: Ticks, connections: u32, span: Duration) -> Result<Sample, String> {
        self.measure_calls(&self.target(), ticks, connections, span)
    }

    /// Loads it, and measures its CPU time until it is idle again: events are integrated after the response.
    pub fn measure_calls(
        &mut self,
        target: &Target,
        ticks: Ticks,
        connections: u32,
        span: Duration,
    ) -> Result<Sample, String> {
        let process = self.gate.process.id();
        let before = ticks.processor_time(process)?;
        let figures = target.load(connections, span)?;
        self.answered += figures.calls;
        self.unanswered += u64::from(connections);
        let after = at_rest(ticks, process)?;
        Ok(Sample { figures, processor: (after - before) / figures.calls as f64 })
    }

    /// Calls it one call after the other; the time of each, in microseconds.
    pub fn one_by_one(&mut self, span: Duration) -> Result<Vec<f64>, String> {
        let times = self.target.one_by_one(span)?;
        self.answered += times.len() as u64;
        Ok(times)
    }

    /// Makes this many calls on each of these connections, in step, spread over `span`.
    pub fn call(&mut self, target: &Target, connections: u32, rounds: u32, span: Duration) -> Result<(), String> {
        target.call(connections, rounds, span)?;
        self.answered += u64::from(connections) * u64::from(rounds);
        Ok(())
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.gate.process.id()
    }

    /// The number of completed calls.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Stops the gate and compares the calls made with those in the ledger. Calls in flight when a load ended may or
    /// may not be there.
    pub fn finish(self) -> Result<Footprint, String> {
        let loaded = usage::resident(self.gate.process.id())?;
        self.gate.stop()?;
        let recorded = self.store.recorded()?;
        let expected = self.answered..=self.answered + self.unanswered;
        let right = expected.contains(&recorded.invocations) && expected.contains(&recorded.events);
        println!(
            "{} calls were made; the ledger holds {} invocations and {} events of them (at most {} more were in flight)",
            self.answered, recorded.invocations, recorded.events, self.unanswered
        );
        if !right {
            return Err("the ledger does not hold exactly the calls that were made".to_owned());
        }
        let grown = self.store.bytes()?.saturating_sub(self.bytes) as f64;
        let calls = recorded.invocations;
        Ok(Footprint { idle: self.idle, loaded, calls, bytes_per_call: grown / calls as f64 })
    }
}

/// The CPU time when the process is idle, or is busy for long.
fn at_rest(ticks: Ticks, process: u32) -> Result<f64, String> {
    const LOOK: Duration = Duration::from_millis(500);
    const IDLE_MICROSECONDS: f64 = 20_000.0;
    let mut used = ticks.processor_time(process)?;
    for _ in 0..40 {
        programs::pause(LOOK);
        let now = ticks.processor_time(process)?;
        let rests = now - used <= IDLE_MICROSECONDS;
        used = now;
        if rests {
            break;
        }
    }
    Ok(used)
}

#[derive(Debug)]
struct Gate {
    process: Process,
    address: SocketAddr,
    /// Kept open, so that later output does not fail.
    _output: BufReader<ChildStdout>,
}

impl Gate {
    fn start(
        command: &[OsString],
        home: &Path,
        store: &Store,
        more: &[(&'static str, OsString)],
    ) -> Result<Self, String> {
        std::fs::create_dir_all(home).map_err(|error| format!("{}: {error}", home.display()))?;
        let (variable, place) = match store {
            Store::Sqlite(directory) => ("TOOLGATE_DATA", directory.as_os_str()),
            Store::Postgres { url } => ("TOOLGATE_DATABASE_URL", OsStr::new(url)),
        };
        let mut environment = vec![
            ("HOME", home.as_os_str()),
            ("TOOLGATE_ADMIN_TOKEN", OsStr::new(ADMINISTRATOR)),
            ("TOOLGATE_EGRESS_ALLOW", OsStr::new("127.0.0.1/32")),
            ("TOOLGATE_LISTEN", OsStr::new("127.0.0.1:0")),
            (variable, place),
        ];
        environment.extend(more.iter().map(|(name, value)| (*name, value.as_os_str())));
        let log: PathBuf = home.join("gate.log");
        let (program, arguments) = command.split_first().ok_or("there is no command that starts a gate")?;
        let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).chain([OsStr::new("serve")]).collect();
        let mut process = Process::start(Path::new(program), &arguments, &environment, log)?;
        let mut output = BufReader::new(process.take_output().ok_or("the gate has no output")?);
        let mut line = String::new();
        output.read_line(&mut line).map_err(|error| format!("the gate could not be read: {error}"))?;
        let address = line.trim_end().strip_prefix("toolgate listening on http://").and_then(|text| text.parse().ok());
        let address = address.ok_or_else(|| format!("the gate did not start:\n{line}{}", process.complaints()))?;
        Ok(Self { process, address, _output: output })
    }

    fn stop(self) -> Result<(), String> {
        self.process.interrupt().map_err(|error| format!("the gate was signalled to stop; {error}"))
    }
}

/// Creates everything that a call needs and returns the agent's key. Every stage of the pipeline has something to
/// check.
fn populate(address: SocketAddr, upstream: &str) -> Result<String, String> {
    let api = Api { address, key: ADMINISTRATOR };
    api.post("/api/v1/agents", r#"{"id":"bench-agent"}"#)?;
    let key = field(&api.post("/api/v1/agents/bench-agent/keys", "")?, "key")?;
    let vault = field(&api.post("/api/v1/vaults", r#"{"name":"bench"}"#)?, "id")?;
    api.post("/api/v1/services", &service(upstream))?;
    let credential = r#"{
        "service": "bench", "label": "Bench", "auth_type": "bearer_token", "scopes_available": ["echo"],
        "material": {"token": "sk_bench_8f2c1d7e94b04a3f"}
    }"#;
    let credential = field(&api.post(&format!("/api/v1/vaults/{vault}/credentials"), credential)?, "id")?;
    let grant = format!(
        r#"{{
            "credential_id": "{credential}", "agent_id": "bench-agent", "scopes": ["echo"],
            "constraints": {{
                "max_invocations_per_hour": 1000000000,
                "allowed_parameters": {{"currency": ["usd", "eur"], "amount_max": 5000}}
            }}
        }}"#
    );
    api.post("/api/v1/grants", &grant)?;
    Ok(key)
}

fn service(upstream: &str) -> String {
    let path = upstream::PATH;
    format!(
        r#"{{
            "service": "bench", "version": "1", "base_url": "{upstream}",
            "tools": {{
                "echo": {{
                    "description": "Answers at once",
                    "scope": "echo",
                    "parameters": {{
                        "type": "object",
                        "properties": {{
                            "amount": {{"type": "integer", "minimum": 1}},
                            "currency": {{"type": "string", "enum": ["usd", "eur"]}},
                            "note": {{"type": "string"}}
                        }},
                        "required": ["amount", "currency"],
                        "additionalProperties": false
                    }},
                    "http": {{"method": "POST", "path": "{path}"}}
                }}
            }}
        }}"#
    )
}
