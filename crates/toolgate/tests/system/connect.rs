//! `toolgate connect` and `toolgate mcp` through the real binary: every client in a home of its own, and clients that nobody
//! here wrote.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::world::World;

mod clients;
mod import;
mod stdio;

/// What a command said.
struct Said {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Said {
    fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Runs a command as the administrator, in the home of the gate.
fn run(world: &World, arguments: &[&str]) -> Said {
    run_with(world, arguments, &[], "")
}

fn run_with(world: &World, arguments: &[&str], variables: &[(&str, &str)], input: &str) -> Said {
    let mut command = world.gate.cli();
    command.args(arguments).envs(variables.iter().copied());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that does not read its input may be gone before it is written.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn json(world: &World, arguments: &[&str]) -> Value {
    let said = run(world, &[arguments, &["--json"]].concat());
    assert_eq!(said.code, 0, "{}", said.all());
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {}", said.all()))
}

fn home(world: &World) -> &Path {
    world.gate.setup().home()
}

/// Writes a file below the home of the gate.
fn write(world: &World, name: &str, text: &str) -> PathBuf {
    let path = home(world).join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The saved logins.
fn logins(world: &World) -> String {
    std::fs::read_to_string(world.gate.setup().configuration_home().join("token")).unwrap_or_default()
}
