//! Lines for those who watch: nothing is lost and the order is kept, whoever ends or restarts in between.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};
use toolgate_testkit::gate_process::{ADMIN_TOKEN, GateProcess, GateSetup, signal};

use super::{Person, setup};
use crate::road::Road;
use crate::world::until;

/// More than a pipe holds, and more than two pages.
const EVENTS: usize = 450;

fn gate_with_events() -> GateProcess {
    let gate = setup().start();
    for number in 0..EVENTS {
        make_vault(&gate, number);
    }
    gate
}

fn make_vault(gate: &GateProcess, number: usize) {
    let (status, answer) = gate.request("POST", "/api/v1/vaults", Some(&json!({"name": format!("vault {number}")})));
    assert_eq!(status, 201, "{answer}");
}

/// An export whose output the test reads.
fn export(setup: &GateSetup, url: &str, arguments: &[&str]) -> (Child, ChildStdout) {
    let mut command = setup.command();
    command.env("TOOLGATE_URL", url).env("TOOLGATE_TOKEN", ADMIN_TOKEN);
    command.args(["audit", "export"]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = child.stdout.take().unwrap();
    (child, output)
}

/// What it wrote to standard error; it must have ended well.
#[track_caller]
fn ended_well(mut child: Child) -> String {
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    said
}

fn sequences(lines: &str) -> Vec<u64> {
    lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["sequence"].as_u64().unwrap()).collect()
}

fn kept(setup: &GateSetup) -> u64 {
    let state = std::fs::read_to_string(setup.home().join("siem.state")).unwrap();
    serde_json::from_str::<Value>(&state).unwrap()["sequence"].as_u64().unwrap()
}

#[test]
fn a_reader_that_goes_away_finds_the_rest_when_it_comes_back() {
    let gate = gate_with_events();
    let person = Person::administrator(&gate);
    let whole = person.reads(&["audit", "export", "--format", "jsonl"]);
    assert!(whole.len() > 100_000, "{}", whole.len());
    let arguments = ["--format", "jsonl", "--state", "siem.state"];

    let (child, mut output) = export(gate.setup(), &gate.url(), &arguments);
    let mut read = vec![0; 10_000];
    output.read_exact(&mut read).unwrap();
    drop(output);
    assert_eq!(ended_well(child), "");
    let first = String::from_utf8(read).unwrap();
    let (first, _) = first.rsplit_once('\n').unwrap();
    assert_eq!(kept(gate.setup()), *sequences(first).last().unwrap(), "only what was taken counts");

    let (child, mut output) = export(gate.setup(), &gate.url(), &arguments);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(ended_well(child), "");
    assert!(format!("{first}\n{rest}") == whole, "a line is lost, doubled or out of order");
    assert_eq!(person.reads(&[&["audit", "export"], &arguments[..]].concat()), "");
    make_vault(&gate, EVENTS);
    assert_eq!(person.reads(&[&["audit", "export"], &arguments[..]].concat()).lines().count(), 1);
}

#[test]
fn an_export_that_is_killed_leaves_no_gap() {
    let gate = gate_with_events();
    let whole = Person::administrator(&gate).reads(&["audit", "export", "--format", "jsonl"]);
    let arguments = ["--format", "jsonl", "--state", "siem.state"];
    let (mut child, output) = export(gate.setup(), &gate.url(), &arguments);
    let mut output = BufReader::new(output);
    let mut lines = String::new();
    // Into the second page, so that the first is on record.
    for _ in 0..250 {
        output.read_line(&mut lines).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    output.read_to_string(&mut lines).unwrap();
    let (first, _) = lines.rsplit_once('\n').unwrap();
    let (child, mut output) = export(gate.setup(), &gate.url(), &arguments);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    ended_well(child);
    let (before, after) = (sequences(first), sequences(&rest));
    assert!(after[0] > 0 && after[0] <= before.last().unwrap() + 1, "{} then {}", before.last().unwrap(), after[0]);
    let mut all = [before, after].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all, sequences(&whole));
}

#[test]
fn a_reader_that_stops_reading_does_not_keep_the_export_from_ending() {
    let gate = gate_with_events();
    let arguments = ["--format", "ocsf", "--follow", "--state", "siem.state"];
    let (child, mut output) = export(gate.setup(), &gate.url(), &arguments);
    output.read_exact(&mut [0; 100]).unwrap();
    signal("TERM", child.id());
    assert_eq!(ended_well(child), "");
    assert!(!gate.setup().home().join("siem.state").exists(), "no page was taken");
}

#[test]
fn one_that_follows_survives_a_restart_of_the_gate_and_ends_when_asked_to() {
    let gate = setup().start();
    let setup = gate.setup().clone();
    let road = Road::to(gate.address());
    let (child, output) = export(
        &setup,
        &road.url(),
        &["--format", "ocsf", "--follow", "--state", "siem.state", "--type", "vault.created"],
    );
    let mut output = BufReader::new(output);
    let mut next = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    make_vault(&gate, 1);
    let first = next();
    assert_eq!((&first["class_uid"], &first["activity_id"]), (&json!(3004), &json!(1)));
    gate.stop();
    let gate = setup.start();
    road.lead_to(gate.address());
    make_vault(&gate, 2);
    let second = next()["metadata"]["sequence"].as_u64().unwrap();
    assert!(second > first["metadata"]["sequence"].as_u64().unwrap());
    until("the position is kept", || {
        gate.request("GET", "/api/v1/audit/head", None);
        (kept(&setup) == second).then_some(())
    });
    signal("TERM", child.id());
    ended_well(child);
}

#[test]
fn several_types_and_one_agent_can_be_chosen() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    for name in ["one", "two"] {
        person.reads(&["vault", "create", name]);
        person.reads(&["agent", "create", name]);
    }
    let types = |arguments: &[&str]| -> Vec<String> {
        let lines = person.reads(&[&["audit", "export", "--format", "jsonl"], arguments].concat());
        let kind = |line| serde_json::from_str::<Value>(line).unwrap()["type"].as_str().unwrap().to_owned();
        lines.lines().map(kind).collect()
    };
    let both = ["vault.created", "agent.created", "vault.created", "agent.created"];
    let all = types(&["--type", "vault.created,agent.created"]);
    assert!(all.ends_with(&both.map(str::to_owned)), "{all:?}");
    assert_eq!(types(&["--type", "vault.created", "--type", "agent.created"]), all);
    assert_eq!(types(&["--agent", "two", "--type", "agent.created"]), ["agent.created"]);
    assert_eq!(types(&["--after", "1000"]), [""; 0]);
    let from_two = person.reads(&["audit", "export", "--format", "jsonl", "--after", "1", "--json"]);
    assert_eq!(sequences(&from_two)[0], 2);
    let shown = person.reads(&["audit", "export", "--format", "openwop"]);
    assert_eq!(sequences(&shown), sequences(&person.reads(&["audit", "export", "--format", "jsonl"])));
    assert!(shown.lines().all(|line| line.contains("\"runId\":\"core.system\"")), "{shown}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    for bad in [
        &["--follow"] as &[&str],
        &["--state", "siem.state"],
        &["--after", "3"],
        &["--type", "vault.created"],
        &["--agent", "billing"],
        &["--format", "jsonl", "-o", "lines"],
        &["--format", "cef"],
    ] {
        assert_eq!(person.says(&[&["audit", "export"], bad].concat()).code, 2, "{bad:?}");
    }
    std::fs::write(gate.setup().home().join("text"), "none").unwrap();
    assert_eq!(person.says(&["audit", "export", "--format", "jsonl", "--state", "text"]).code, 1);
    person.reads(&["audit", "export", "--format", "jsonl", "--state", "siem.state"]);
    let other = setup().start();
    let state = gate.setup().home().join("siem.state");
    let said = Person::administrator(&other).says(&[
        "audit",
        "export",
        "--format",
        "jsonl",
        "--state",
        state.to_str().unwrap(),
    ]);
    assert!(said.code == 1 && said.stdout.is_empty(), "{}", said.all());
    assert!(said.stderr.contains("belongs to another log"), "{}", said.stderr);
}
