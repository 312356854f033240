//! The command line: every command for people and for programs, its refusals, and that no secret is ever printed.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;
use toolgate_testkit::gate_process::{GateProcess, GateSetup};

mod audit;
mod audit_feed;
mod authority;
mod demo;
mod logins;
mod refusals;
mod service;
mod service_import;
mod terminal;
mod tool;
mod typos;

fn setup() -> GateSetup {
    GateSetup::new(env!("CARGO_BIN_EXE_toolgate"))
}

/// What a command said.
struct Said {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Said {
    fn of(mut command: Command, input: &str) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A command that does not read its input may be gone before it is written.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// All that was printed.
    fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{}", self.all());
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.all()))
    }
}

/// Somebody at the command line of one gate.
struct Person<'a> {
    gate: &'a GateProcess,
    key: &'a str,
}

impl<'a> Person<'a> {
    fn administrator(gate: &'a GateProcess) -> Self {
        Self { gate, key: gate.token() }
    }

    fn says(&self, arguments: &[&str]) -> Said {
        self.says_with(arguments, "")
    }

    fn says_with(&self, arguments: &[&str], input: &str) -> Said {
        let mut command = self.gate.cli();
        command.env("TOOLGATE_TOKEN", self.key).args(arguments);
        Said::of(command, input)
    }

    /// What the command prints for people; it must succeed.
    #[track_caller]
    fn reads(&self, arguments: &[&str]) -> String {
        let said = self.says(arguments);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{arguments:?}: {}", said.all());
        said.stdout
    }

    /// The result of a call, which must succeed, and what is told besides.
    #[track_caller]
    fn calls(&self, arguments: &[&str]) -> (Value, String) {
        let said = self.says(arguments);
        (said.json(), said.stderr)
    }

    /// What the command prints for programs; it must succeed.
    fn gets(&self, arguments: &[&str]) -> Value {
        self.gets_with(arguments, "")
    }

    fn gets_with(&self, arguments: &[&str], input: &str) -> Value {
        self.says_with(&[arguments, &["--json"]].concat(), input).json()
    }

    /// What the command makes; answers its id.
    fn makes(&self, arguments: &[&str], input: &str) -> String {
        self.gets_with(arguments, input)["id"].as_str().unwrap().to_owned()
    }
}

/// The lines of a table without its heading, as words.
fn rows(table: &str) -> Vec<Vec<&str>> {
    table
        .lines()
        .skip(1)
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect()
}
