//! The real binary as a fixture: a gate in a process and a home of its own, on a port that the system chooses.
//!
//! ```text
//! let setup = GateSetup::new(env!("CARGO_BIN_EXE_toolgate"));       // a temporary home, the token ADMIN_TOKEN
//! let gate = setup.start();                                          // returns when it listens
//! let (status, vault) = gate.request("POST", "/api/v1/vaults", Some(&json!({"name": "main"})));
//! gate.kill();                                                       // as kill -9; gate.stop() is SIGTERM
//! let gate = setup.start();                                          // again on the same home
//! ```
//!
//! `GateSetup` can be changed before a start: `.database(url)`, `.environment(name, value)`, `.argument(text)`,
//! `.configuration(toml)`, `.without_token()`. `start_refused()` expects that the gate does not start and returns its
//! output. `command()` is the binary with the same clean environment, for running the command line; `gate.cli()` also knows
//! the URL and the token. A gate that is dropped is killed; the home is removed with the last setup or gate that uses it.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use serde_json::Value;
use tempfile::TempDir;

use crate::http::{self, Answer};

/// The administrator's token of gates that are not started [`GateSetup::without_token`].
pub const ADMIN_TOKEN: &str = "token-of-the-test-administrator";

/// How gates are started, and the home that they share.
#[derive(Debug, Clone)]
pub struct GateSetup {
    binary: PathBuf,
    home: Arc<TempDir>,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    token: Option<String>,
    listen: SocketAddr,
}

#[derive(Debug)]
pub struct GateProcess {
    child: Child,
    address: SocketAddr,
    token: String,
    setup: GateSetup,
    output: Output,
}

#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// All that it wrote to its standard output.
    pub stdout: String,
    /// All that it wrote to its standard error.
    pub stderr: String,
}

impl GateSetup {
    /// A gate of this binary, in a new home.
    pub fn new(binary: impl AsRef<Path>) -> Self {
        let home = TempDir::with_prefix("toolgate-home-").expect("a temporary home");
        Self {
            binary: binary.as_ref().to_owned(),
            home: Arc::new(home),
            arguments: Vec::new(),
            environment: Vec::new(),
            token: Some(ADMIN_TOKEN.to_owned()),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        }
    }

    /// Adds an argument of `serve`.
    #[must_use]
    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Listens at this address instead of a free port.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// Listens on a free port of an address that no other test uses: the port is still free when the gate is started again
    /// there, because the system gives it to nothing else in between.
    #[must_use]
    pub fn on_own_address(self) -> Self {
        static GIVEN: AtomicU8 = AtomicU8::new(1);
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let own = GIVEN.fetch_add(1, Ordering::Relaxed);
        self.listen(SocketAddr::from(([127, own.max(1), high, low.clamp(1, 254)], 0)))
    }

    #[must_use]
    pub fn environment(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Allows calls to services on loopback.
    #[must_use]
    pub fn reaching_loopback(self) -> Self {
        self.environment("TOOLGATE_EGRESS_ALLOW", "127.0.0.1/32")
    }

    /// Uses this PostgreSQL database as the ledger.
    #[must_use]
    pub fn database(self, url: &str) -> Self {
        self.environment("TOOLGATE_DATABASE_URL", url)
    }

    /// Writes the configuration file of the home.
    #[must_use]
    pub fn configuration(self, toml: &str) -> Self {
        std::fs::create_dir_all(self.configuration_home()).expect("the configuration home");
        std::fs::write(self.configuration_home().join("toolgate.toml"), toml).expect("the configuration file");
        self
    }

    /// Lets the gate generate its own token, which [`GateProcess::token`] takes from the output of the first start.
    #[must_use]
    pub fn without_token(mut self) -> Self {
        self.token = None;
        self
    }

    /// The home directory; `.local/share/toolgate` and `.config/toolgate` are below it.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The directory of the ledger, unless arguments or variables say otherwise.
    pub fn data(&self) -> PathBuf {
        self.home().join(".local/share/toolgate")
    }

    /// The directory of keys and configuration, unless arguments or variables say otherwise.
    pub fn configuration_home(&self) -> PathBuf {
        self.home().join(".config/toolgate")
    }

    /// The binary with nothing in its environment but the home and the variables that were set.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.env_clear().env("HOME", self.home()).current_dir(self.home());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // Nothing in front of a test must turn away before the gate may stop.
        command.env("TOOLGATE_LAME_DUCK_SECONDS", "0");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts a gate and waits until it listens. Panics with its output if it does not.
    pub fn start(&self) -> GateProcess {
        match self.try_start() {
            Ok(gate) => gate,
            Err(ended) => panic!("the gate did not start ({}):\n{}{}", ended.status, ended.stdout, ended.stderr),
        }
    }

    /// Starts a gate that must refuse to start.
    pub fn start_refused(&self) -> Ended {
        match self.try_start() {
            Ok(gate) => panic!("the gate started at {} although it should not", gate.address),
            Err(ended) => ended,
        }
    }

    /// Starts a gate; returns the ended process if it ends before it listens.
    pub fn try_start(&self) -> Result<GateProcess, Ended> {
        let mut command = self.command();
        command.args(["serve", "--listen", &self.listen.to_string()]).args(&self.arguments);
        if let Some(token) = &self.token {
            command.env("TOOLGATE_ADMIN_TOKEN", token);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", self.binary.display()));
        let mut output = Output::of(&mut child);
        let Some(address) = output.listening() else {
            let status = child.wait().expect("a process that ends");
            return Err(output.ended(status));
        };
        let token = match &self.token {
            Some(token) => token.clone(),
            None => output.generated_token().unwrap_or_default(),
        };
        Ok(GateProcess { child, address, token, setup: self.clone(), output })
    }
}

impl GateProcess {
    /// A gate of this binary in a new home.
    pub fn start(binary: impl AsRef<Path>) -> Self {
        GateSetup::new(binary).start()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as `http://ADDRESS`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The administrator's token; empty if the gate generated it at an earlier start.
    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it was started, for another start on the same home.
    pub fn setup(&self) -> &GateSetup {
        &self.setup
    }

    /// Its standard error so far, at least up to the listening line.
    pub fn stderr(&mut self) -> String {
        self.output.stderr_so_far()
    }

    /// A request of the administrator; panics if there is no response.
    pub fn request(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        self.request_as(&self.token, method, path, body)
    }

    /// A request with this key; panics if there is no response.
    pub fn request_as(&self, key: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let answer = self.try_request_as(key, method, path, body);
        let answer = answer.unwrap_or_else(|error| panic!("{method} {path} got no response: {error}"));
        (answer.status, answer.json())
    }

    /// A request with this key, which may stay without a response when the gate stops.
    pub fn try_request_as(&self, key: &str, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
        request(self.address, key, method, path, body)
    }

    /// The binary with the URL and the token of this gate in its environment.
    pub fn cli(&self) -> Command {
        let mut command = self.setup.command();
        command.env("TOOLGATE_URL", self.url()).env("TOOLGATE_TOKEN", &self.token).stdin(Stdio::null());
        command
    }

    /// Sends SIGTERM and does not wait.
    pub fn terminate(&self) {
        signal("TERM", self.id());
    }

    /// Sends SIGTERM and waits for the end.
    pub fn stop(self) -> Ended {
        self.terminate();
        self.wait()
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Ended {
        let status = self.child.wait().expect("a process that ends");
        std::mem::take(&mut self.output).ended(status)
    }

    /// Kills it, as `kill -9` does.
    pub fn kill(mut self) -> Ended {
        self.child.kill().expect("a process that can be killed");
        self.wait()
    }
}

impl Drop for GateProcess {
    fn drop(&mut self) {
        // Both fail only if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request to any gate on this machine; a thread only needs the address.
pub fn request(address: SocketAddr, key: &str, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
    let authorization = format!("Bearer {key}");
    let mut headers = vec![("Authorization", authorization.as_str())];
    let body = body.map(Value::to_string).unwrap_or_default();
    if !body.is_empty() {
        headers.push(("Content-Type", "application/json"));
    }
    http::send(address, method, path, &headers, body.as_bytes())
}

/// Sends a signal to one process. The standard library can only kill.
pub fn signal(name: &str, process: u32) {
    assert!(try_signal(name, process), "signal {name} could not be sent to process {process}");
}

/// The same for a process that may have ended; returns whether it was there.
pub fn try_signal(name: &str, process: u32) -> bool {
    let status = Command::new("sh").args(["-c", "kill -s \"$1\" \"$2\"", "kill", name, &process.to_string()]).status();
    status.is_ok_and(|status| status.success())
}

/// Reads both streams of the process as it writes, so that it never waits for a reader.
#[derive(Debug, Default)]
struct Output {
    stdout: Option<BufReader<std::process::ChildStdout>>,
    lines: String,
    stderr: Option<Receiver<String>>,
    stderr_text: String,
    reader: Option<JoinHandle<()>>,
}

impl Output {
    fn of(child: &mut Child) -> Self {
        let stderr = child.stderr.take().expect("a pipe");
        let (sender, receiver) = channel();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                let Ok(line) = line else { return };
                // The receiver lives as long as it is needed.
                let _ = sender.send(line + "\n");
            }
        });
        Self {
            stdout: child.stdout.take().map(BufReader::new),
            stderr: Some(receiver),
            reader: Some(reader),
            ..Self::default()
        }
    }

    /// The address of the listening line; `None` where the output ends without one.
    fn listening(&mut self) -> Option<SocketAddr> {
        loop {
            let mut line = String::new();
            if self.stdout.as_mut()?.read_line(&mut line).ok()? == 0 {
                return None;
            }
            self.lines.push_str(&line);
            if let Some(url) = line.trim_end().strip_prefix("toolgate listening on ") {
                let address = url.strip_prefix("https://").or(url.strip_prefix("http://")).expect("a URL");
                return Some(address.parse().expect("an address in the listening line"));
            }
        }
    }

    /// The token is written before the listening line, but to another pipe. `None` if the gate says that there is none
    /// to show.
    fn generated_token(&mut self) -> Option<String> {
        loop {
            let found = self.stderr_text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            if let Some(token) = found.into_iter().find(|word| word.starts_with("tgk_") && word.len() == 50) {
                return Some(token.to_owned());
            }
            if self.stderr_text.contains("token was shown") || self.stderr_text.contains("in TOOLGATE_ADMIN_TOKEN") {
                return None;
            }
            let line = self.stderr.as_ref()?.recv_timeout(std::time::Duration::from_secs(10)).ok()?;
            self.stderr_text.push_str(&line);
        }
    }

    fn stderr_so_far(&mut self) -> String {
        while let Some(Ok(line)) = self.stderr.as_ref().map(Receiver::try_recv) {
            self.stderr_text.push_str(&line);
        }
        self.stderr_text.clone()
    }

    fn ended(mut self, status: ExitStatus) -> Ended {
        if let Some(mut stdout) = self.stdout.take() {
            stdout.read_to_string(&mut self.lines).expect("output in UTF-8");
        }
        if let Some(reader) = self.reader.take() {
            reader.join().expect("a reader that ends with the process");
        }
        let stderr = self.stderr_so_far();
        Ended { status, stdout: std::mem::take(&mut self.lines), stderr }
    }
}
