//! `toolgate mcp --stdio`, as a bridge and on an embedded ledger, driven by the official Python client, unmodified.

use std::io::{BufRead, BufReader};
use std::process::Command;

use serde_json::json;

use super::*;
use crate::approvals::office::Office;
use crate::openintent_sdk::python;
use crate::world::{setup, text};

/// Runs the official client against `toolgate mcp` with these arguments.
fn official(home: &Path, arguments: &[&str], variables: &[(&str, String)]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/mcp_stdio_client.py");
    let output = Command::new(python())
        // Nothing of this machine: no proxies, no other packages.
        .env_clear()
        .env("HOME", home)
        .env("TOOLGATE", env!("CARGO_BIN_EXE_toolgate"))
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .arg("-B")
        .arg(script)
        .args(arguments)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}", output.status);
    said
}

#[test]
fn the_official_client_speaks_to_a_running_gate_over_stdio_in_both_eras() {
    let world = World::sqlite();
    let office = Office::open(&world);
    let connected = run(&world, &["connect", "windsurf", "--agent", "teller", "--yes"]);
    assert_eq!(connected.code, 0, "{}", connected.all());
    let grants = office.admin.get("/api/v1/grants?agent_id=teller").ok();
    let variables = [
        ("TOOLGATE_GATE", world.gate.url()),
        ("ADMIN_KEY", world.gate.token().to_owned()),
        ("APPROVER_KEY", office.clerk.key.clone()),
        ("GRANT", text(&grants, "/grants/0/id").to_owned()),
    ];
    let said = official(home(&world), &["bridge", "--profile", "teller"], &variables);
    for mode in ["2026-07-28", "auto", "legacy"] {
        assert!(said.contains(&format!("{mode}: done")), "{said}");
    }
    assert!(!said.contains("tgk_"), "{said}");
    // One balance and one transfer in each mode.
    assert_eq!(office.bank.count(), 6);
}

#[test]
fn the_official_client_speaks_to_an_embedded_gate_over_stdio_in_both_eras() {
    let setup = setup();
    std::fs::create_dir(setup.home().join("project")).unwrap();
    std::fs::write(setup.home().join("project/notes.txt"), "kept\n").unwrap();
    let root = setup.home().join("project").display().to_string();
    let said = official(setup.home(), &["embedded", "--root", &root, "--agent", "coder", "--mode", "auto_edit"], &[]);
    for mode in ["2026-07-28", "auto", "legacy"] {
        assert!(said.contains(&format!("{mode}: done")), "{said}");
    }
}

/// A line-by-line conversation with `toolgate mcp`.
struct Bridge {
    child: std::process::Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Bridge {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn send(&mut self, message: Value) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the output ended");
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.next();
            if message["id"] == json!(id) {
                return message;
            }
        }
    }

    /// Ends the input; what was printed on standard error is returned.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn a_session_hears_of_changes_and_outlives_a_restart_of_the_gate() {
    let world = World::of(&setup().reaching_loopback().on_own_address(), None);
    let office = Office::open(&world);
    assert_eq!(run(&world, &["connect", "windsurf", "--agent", "teller", "--yes"]).code, 0);
    let mut command = world.gate.setup().command();
    let mut bridge = Bridge::start(command.args(["mcp", "--stdio", "--profile", "teller"]));
    let opened = bridge.ask(1, "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18", "{opened}");
    bridge.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let listed = bridge.ask(2, "tools/list", json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 6, "{listed}");

    let grants = office.admin.get("/api/v1/grants?agent_id=teller").ok();
    let grant = text(&grants, "/grants/0/id").to_owned();
    // The stream may not be open yet: the grant is changed until the client hears of it.
    let heard = {
        let (admin, grant) = (office.admin.clone(), grant.clone());
        let (done, stop) = std::sync::mpsc::channel::<()>();
        let changing = std::thread::spawn(move || {
            while stop.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                admin.patch(&format!("/api/v1/grants/{grant}/suspend"), &json!({"reason": "a test"}));
                admin.patch(&format!("/api/v1/grants/{grant}/resume"), &json!({}));
            }
        });
        let heard = bridge.next();
        done.send(()).unwrap();
        changing.join().unwrap();
        heard
    };
    assert_eq!(heard["method"], "notifications/tools/list_changed", "{heard}");

    let (address, setup) = (world.gate.address(), world.gate.setup().clone());
    world.stop();
    let down = bridge.ask(3, "tools/list", json!({}));
    assert!(down["error"]["message"].as_str().unwrap().contains("could not connect"), "{down}");
    let _gate = setup.listen(address).start();
    let listed = bridge.ask(4, "tools/list", json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 6, "{listed}");
    let (code, said) = bridge.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("a new one was opened") && !said.contains("tgk_"), "{said}");
}

#[test]
fn what_cannot_be_served_is_told_on_standard_error_and_nothing_is_printed() {
    let gate = setup().start();
    for (arguments, code, reason) in [
        (&["mcp"][..], 2, "--stdio"),
        (&["mcp", "--stdio", "--profile", "nobody"], 1, "no profile nobody"),
        // The running gate has the ledger.
        (&["mcp", "--stdio"], 1, "in use"),
    ] {
        let output = gate.setup().command().args(arguments).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(code), &b""[..]), "{said}");
        assert!(said.contains(reason), "{said}");
    }
}
