//! The inbox with a person at the keys.

use serde_json::{Value, json};
use toolgate_testkit::gate_process::{GateProcess, signal};

use super::Coder;
use super::terminal::Terminal;
use crate::road::Road;
use crate::world::{World, setup, until};

const PASTE: &str = "\x1b[200~o\ry\x1b[201~";
const ALTERNATE_SCREEN_ENDS: &str = "\x1b[?1049l";

fn inbox(gate: &GateProcess) -> Terminal {
    let mut command = gate.cli();
    command.arg("approvals");
    Terminal::run(command)
}

#[test]
fn only_its_own_key_approves_a_call_and_only_that_call() {
    let world = World::sqlite();
    let coder = Coder::of(&world);
    let mut terminal = inbox(&world.gate);
    terminal.until("No call waits for approval.");
    let waiting = coder.asks("cargo test\u{200b} --all");
    let screen = terminal.until("cargo test\\u{200b} --all");
    for part in ["1 pending · live", "coder", "claude-code.Bash", "Session       s1", "/home/ann/shop", "! risky"] {
        assert!(screen.contains(part), "{part} is missing:\n{screen}");
    }

    terminal.settle();
    terminal.press(PASTE);
    terminal.press("oo");
    terminal.until("several keys at once");
    assert_eq!(coder.pending(), [waiting.approval.as_str()]);

    terminal.settle();
    terminal.press("o");
    terminal.until(&format!("{} is approved by admin (terminal)", waiting.approval));
    assert_eq!(waiting.answer().0, "allow");

    terminal.press("q");
    terminal.until_restored();
}

#[test]
fn the_rule_that_is_shown_is_the_rule_that_stands() {
    let world = World::sqlite();
    let coder = Coder::of(&world);
    let waiting = coder.asks("cargo test --all");
    let mut terminal = inbox(&world.gate);
    terminal.until("cargo test --all");
    let rule = "commands of claude-code.Bash that begin with `cargo test` by coder, in session s1";
    terminal.settle();
    terminal.press("p");
    let screen = terminal.until(rule);
    assert!(screen.contains("+ covered   cargo test") && screen.contains("- excluded  cargo"), "{screen}");
    assert_eq!(coder.pending(), [waiting.approval.as_str()], "showing a rule decides nothing");
    terminal.press("y");
    terminal.until("later calls are covered by standing_");
    assert_eq!(waiting.answer().0, "allow");
    let standing = coder.admin.get("/api/v1/standing-approvals?active=true").ok();
    assert_eq!(standing["standing_approvals"][0]["rule"], rule);

    let later = json!({"tool": "claude-code.Bash", "category": "exec", "arguments": {"command": "cargo test -q"},
        "session": {"name": "s1", "workspace": "/home/ann/shop"}});
    assert_eq!(coder.agent.post("/api/v1/approvals/ask", &later).ok()["source"], "standing");
    terminal.press("q");
    terminal.until_restored();
}

#[test]
fn a_no_with_its_reason_reaches_the_agent_and_whoever_was_first_is_told() {
    let world = World::sqlite();
    let coder = Coder::of(&world);
    let first = coder.asks("ls one");
    let second = coder.asks("ls two");
    let mut terminal = inbox(&world.gate);
    terminal.until("2 pending");
    terminal.settle();
    terminal.press("r");
    terminal.until("Reason:");
    terminal.press("use the other one");
    terminal.until("use the other one_");
    terminal.press("\r");
    terminal.until(&format!("{} is denied by admin (terminal)", first.approval));
    assert_eq!(first.answer(), ("deny".to_owned(), "denied by admin: use the other one".to_owned()));

    let path = format!("/api/v1/approvals/{}/decide", second.approval);
    coder.admin.post(&path, &json!({"decision": "approve"})).ok();
    terminal.until(&format!("{} is approved by admin (http)", second.approval));
    terminal.until("No call waits for approval.");
    terminal.press("q");
    terminal.until_restored();
}

#[test]
fn a_question_is_answered_in_the_inbox() {
    let setup = setup();
    let root = setup.home().join("project");
    std::fs::create_dir(&root).unwrap();
    let world = World::of(&setup.environment("TOOLGATE_WORKSPACE_ROOT", &root), None);
    let agent = world.admin().registers_as(&json!({"id": "coder", "scopes": ["workspace:*"]}));
    let question = json!({
        "tool": "x-host-toolgate-workspace.AskUserQuestion",
        "parameters": {"question": "Which colour?", "options": ["red", "blue"]},
    });
    let asked = std::thread::spawn(move || agent.post("/api/v1/tools/invoke", &question));
    let mut terminal = inbox(&world.gate);
    terminal.until("Which colour?");
    terminal.settle();
    terminal.press("a");
    terminal.until("Answer: _");
    terminal.press("2");
    terminal.until("Answer (blue): 2_");
    terminal.press("\r");
    terminal.until("is approved by admin");
    assert_eq!(asked.join().unwrap().ok()["result"], "blue");
    terminal.press("q");
    terminal.until_restored();
}

#[test]
fn a_gate_that_is_lost_is_shown_and_found_again() {
    let world = World::sqlite();
    let road = Road::to(world.gate.address());
    let mut command = world.gate.cli();
    command.env("TOOLGATE_URL", road.url()).arg("approvals");
    let mut terminal = Terminal::run(command);
    terminal.until("live");
    let setup = world.gate.setup().clone();
    world.stop();
    terminal.until("! NOT LIVE, retrying");
    let world = World::of(&setup, None);
    road.lead_to(world.gate.address());
    let waiting = Coder::of(&world).asks("ls after");
    let screen = terminal.until("ls after");
    assert!(screen.contains(&waiting.approval), "{screen}");
    terminal.until("· live ·");
}

#[test]
fn whatever_ends_the_inbox_decides_nothing_and_gives_the_terminal_back() {
    let world = World::sqlite();
    let coder = Coder::of(&world);
    let waiting = coder.asks("ls");
    for name in ["TERM", "HUP", "INT"] {
        let mut terminal = inbox(&world.gate);
        terminal.until("Arguments (exact)");
        signal(name, terminal.child.id());
        terminal.until_restored();
    }
    let mut terminal = inbox(&world.gate);
    terminal.until("Arguments (exact)");
    let mut child = terminal.vanish();
    until("the program ends with its terminal", || {
        coder.admin.get("/api/v1/approvals").ok();
        child.try_wait().unwrap()
    });
    assert_eq!(coder.pending(), [waiting.approval.as_str()]);
}

#[test]
fn where_there_is_no_terminal_the_list_is_printed() {
    let world = World::sqlite();
    let waiting = Coder::of(&world).asks("ls");
    let output = world.gate.cli().arg("approvals").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains(&waiting.approval) && !text.contains('\u{1b}'), "{text}");
    let output = world.gate.cli().args(["approvals", "--json"]).output().unwrap();
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list["approvals"][0]["id"], waiting.approval.as_str());
}

impl Terminal {
    /// Waits for the end, and looks at what is left of the terminal.
    #[track_caller]
    fn until_restored(self) {
        // The far end keeps the modes of the terminal for as long as it is open.
        let far = self.modes();
        let (code, last) = self.end();
        assert_eq!(code, Some(0), "{last}");
        assert!(last.contains(ALTERNATE_SCREEN_ENDS), "{last:?}");
        assert!(far.are_as_a_shell_wants_them());
    }
}
