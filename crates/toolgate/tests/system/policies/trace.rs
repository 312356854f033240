//! An execution as a timeline with every decision, and the same judged again by the policies of then.

use serde_json::{Value, json};

use super::office::{KEY, Office, call_with, no_note};
use super::terminal::Terminal;
use crate::world::{Reply, World, on_both_engines, text};

on_both_engines! {
    a_timeline_shows_every_call_and_every_decision,
    a_timeline_shows_who_was_asked_and_who_answered,
    a_replay_comes_to_the_same_verdicts,
    a_replay_uses_the_policies_of_then,
    what_was_not_recorded_is_undecidable_in_a_replay_and_no_difference,
    what_never_ran_is_not_there_to_be_drawn_or_replayed,
}

const RUN: &str = "run-17";

const RULES: &str = r#"
@id("ask-about-commands")
@reason("a command is looked at")
@remedy("ask")
forbid (principal, action in Action::"call", resource)
when { resource.tier == "exec" };

@id("no-way-out")
@reason("nothing leaves after a page")
forbid (principal, action == Action::"call:desk.send", resource)
when { context.marks.contains("untrusted-content") };

@id("no-keys")
@remedy("redact")
@detectors("secret")
forbid (principal, action in [Action::"call", Action::"result"], resource);

@id("watching")
@mode("shadow")
forbid (principal, action == Action::"call:desk.page", resource);
"#;

/// A call as part of the run.
fn in_run(tool: &str, parameters: Value) -> Value {
    call_with(tool, parameters, json!({"context": {"run_id": RUN}}))
}

/// A run in which every kind of verdict was given.
fn run(office: &Office) -> Vec<Reply> {
    let page = office.agent.invokes(in_run("page", json!({})));
    page.ok();
    let note = office.agent.invokes(in_run("note", json!({"text": "hello"})));
    note.ok();
    let denied = office.agent.invokes(in_run("send", json!({"text": "hello"})));
    denied.refused(403, "POLICY_DENIED");
    let redacted = office.agent.invokes(in_run("note", json!({"text": format!("use {KEY}")})));
    redacted.ok();
    let asked = office.asks(in_run("run", json!({"command": "make"}))).decided(&office.ann, "approve");
    asked.ok();
    let file = office.agent.invokes(in_run("file", json!({})));
    file.ok();
    vec![page, note, denied, redacted, asked, file]
}

/// The steps of a replay: at which point, of which tool, what was said then and now, and whether that is the same.
fn steps(replay: &Value) -> Vec<String> {
    let told = |step: &Value| {
        let (then, now) = (text(step, "/recorded/verdict"), text(step, "/replayed/verdict"));
        format!("{} {} {then} {now} {}", text(step, "/hook"), text(step, "/subject"), step["same"])
    };
    replay["steps"].as_array().unwrap().iter().map(told).collect()
}

fn a_timeline_shows_every_call_and_every_decision(world: &World) {
    let office = Office::open(world);
    office.applies(RULES);
    let replies = run(&office);
    let terminal = Terminal::of(world, &office.admin);
    let drawn = terminal.reads(&["trace", RUN]);
    assert!(drawn.starts_with("6 calls, "), "{drawn}");
    for reply in &replies {
        let heading = format!("call {} desk.", text(&reply.json(), "/invocation_id"));
        assert!(drawn.contains(&heading), "{heading}: {drawn}");
    }
    for line in ["ALLOW", "DENY", "MODIFY", "ASK", "no-way-out@1", "no-keys@1", "ask-about-commands@1"] {
        assert!(drawn.contains(line), "{line}: {drawn}");
    }
    assert!(drawn.contains("\"nothing leaves after a page\""), "{drawn}");
    assert!(drawn.contains("shadow: watching@1 would deny"), "{drawn}");
    let approval = office.decisions(&replies[4])[0]["approval_id"].clone();
    assert!(drawn.contains(approval.as_str().unwrap()), "{approval}: {drawn}");
    assert!(!drawn.contains(KEY), "{drawn}");
    // One call of it alone.
    let one = text(&replies[2].json(), "/invocation_id").to_owned();
    let alone = terminal.reads(&["trace", &one]);
    assert!(alone.starts_with("1 calls, ") && alone.contains("no-way-out@1"), "{alone}");
    let events = terminal.gets(&["trace", RUN])["events"].as_array().unwrap().clone();
    let decided = events.iter().filter(|event| event["type"] == "hook.decided").count();
    // Each call on its way there, and each answer on its way back, but for the call that was refused.
    assert_eq!(decided, 6 + 5);
}

fn a_timeline_shows_who_was_asked_and_who_answered(world: &World) {
    let office = Office::open(world);
    office.applies(RULES);
    let make = || in_run("run", json!({"command": "make"}));
    let approved = office.asks(make()).decided(&office.ann, "approve");
    approved.ok();
    office.asks(make()).decided(&office.ann, "deny").refused(403, "APPROVAL_DENIED");
    let terminal = Terminal::of(world, &office.admin);
    let drawn = terminal.reads(&["trace", RUN]);
    let found = terminal.gets(&["trace", RUN]);
    let [yes, no] = [0, 1].map(|place| found["approvals"][place].clone());
    assert_eq!((text(&yes, "/status"), text(&no, "/status")), ("approved", "denied"));
    assert_eq!(found["approvals_not_shown"], json!([]));
    let lines = |drawn: &str, approval: &Value| -> Vec<String> {
        let id = format!(" {}, ", text(approval, "/id"));
        drawn.lines().filter_map(|line| line.split_once(&id)).map(|(_, words)| words.to_owned()).collect()
    };
    for approval in [&yes, &no] {
        let [asked, ended] = &lines(&drawn, approval)[..] else { panic!("{drawn}") };
        assert!(asked.starts_with("needs 1 approver, until ") && asked.contains("a command is looked at"), "{asked}");
        assert!(ended.starts_with("by ann via http, after "), "{ended}");
    }
    let place = |words: &str| drawn.find(words).unwrap_or_else(|| panic!("{words}: {drawn}"));
    assert!(place(" asked ") < place(" approved ") && place(" approved ") < place(" ASK, "), "{drawn}");
    assert!(place(" denied ") < place(" authorization.decided ") && drawn.starts_with("2 calls, "), "{drawn}");
    // One call of it alone, with all that belongs to it.
    let alone = terminal.reads(&["trace", text(&approved.json(), "/invocation_id")]);
    assert!(alone.starts_with("1 calls, ") && alone.contains(" ASK, ") && !alone.contains(" denied "), "{alone}");
    assert_eq!(lines(&alone, &yes), lines(&drawn, &yes));
    // Whoever reads the log need not be one who sees approvals.
    let auditor = json!({"id": "auditor", "kind": "user", "permissions": ["audit.read"]});
    let auditor = Terminal::of(world, &office.admin.registers_as(&auditor));
    let unseen = auditor.reads(&["trace", RUN]);
    assert!(unseen.contains(&format!("Not shown: {}, {}; ", text(&yes, "/id"), text(&no, "/id"))), "{unseen}");
    assert!(unseen.contains(" ASK, ") && !unseen.contains(" approved "), "{unseen}");
}

fn a_replay_comes_to_the_same_verdicts(world: &World) {
    let office = Office::open(world);
    office.applies(RULES);
    run(&office);
    let replay = office.admin.get(&format!("/api/v1/runs/{RUN}/replay")).ok();
    let found = steps(&replay);
    assert!(found.contains(&"tool_call_request desk.send deny deny true".to_owned()), "{found:?}");
    assert!(found.contains(&"tool_call_request desk.run ask ask true".to_owned()), "{found:?}");
    assert!(found.contains(&"tool_call_request desk.note allow allow true".to_owned()), "{found:?}");
    assert!(found.contains(&"tool_call_request desk.note modify modify true".to_owned()), "{found:?}");
    assert!(found.contains(&"tool_call_result desk.file modify modify true".to_owned()), "{found:?}");
    assert_eq!(found.len(), 11, "{found:?}");
    assert!(found.iter().all(|step| !step.ends_with("false")), "{found:?}");
    let terminal = Terminal::of(world, &office.admin);
    let said = terminal.reads(&["trace", "replay", RUN]);
    assert!(said.contains("11 steps: ") && said.contains(" 0 different"), "{said}");
    assert!(said.contains("then: deny by no-way-out, policy version 1, in "), "{said}");
    let again = office.admin.get(&format!("/api/v1/runs/{RUN}/replay")).ok();
    assert_eq!(again, replay, "durations are those that were recorded");
}

fn a_replay_uses_the_policies_of_then(world: &World) {
    let office = Office::open(world);
    office.applies(RULES);
    run(&office);
    // Since then: other rules, another version of the tool, other marks.
    office.applies(&no_note("other", "hello"));
    let refused = office.agent.invokes(in_run("note", json!({"text": "hello"})));
    refused.refused(403, "POLICY_DENIED");
    let replay = office.admin.get(&format!("/api/v1/runs/{RUN}/replay")).ok();
    let versions: Vec<&Value> =
        replay["steps"].as_array().unwrap().iter().map(|step| &step["policy_version"]).collect();
    assert_eq!(versions, [[&json!(1); 11].as_slice(), &[&json!(2)]].concat());
    let found = steps(&replay);
    assert!(found.contains(&"tool_call_request desk.send deny deny true".to_owned()), "{found:?}");
    assert!(found.iter().all(|step| !step.ends_with("false")), "{found:?}");
    // The call that was refused by what it says is not in the log with what it said.
    assert_eq!(found[11], "tool_call_request desk.note deny undecidable null");
    let terminal = Terminal::of(world, &office.admin);
    let said = terminal.reads(&["trace", "replay", RUN]);
    assert!(said.contains("then: deny by other, policy version 2, in "), "{said}");
    assert!(said.contains("now:  undecidable by other; not recorded: arguments.text"), "{said}");
}

fn what_was_not_recorded_is_undecidable_in_a_replay_and_no_difference(world: &World) {
    let office = Office::open(world);
    office.applies(
        "@id(\"no-press\")\nforbid (principal, action == Action::\"call:desk.send\", resource)\n\
         when { context.arguments has to && context.arguments.to == \"press\" };\n\
         @id(\"no-big-notes\")\nforbid (principal, action == Action::\"call:desk.note\", resource)\n\
         when { context.arguments has count && context.arguments.count > 5 };\n",
    );
    office.agent.invokes(in_run("send", json!({"to": "team"}))).ok();
    office.agent.invokes(in_run("note", json!({"count": 5}))).ok();
    let replay = office.admin.get(&format!("/api/v1/runs/{RUN}/replay")).ok();
    let found = steps(&replay);
    assert_eq!(
        found,
        ["tool_call_request desk.send allow undecidable null", "tool_call_request desk.note allow allow true"]
    );
    assert_eq!(replay["steps"][0]["replayed"]["missing"], json!(["arguments.to"]));
    let said = Terminal::of(world, &office.admin).reads(&["trace", "replay", RUN]);
    assert!(said.ends_with("2 steps: 1 the same, 0 different, 1 undecidable\n"), "{said}");
}

fn what_never_ran_is_not_there_to_be_drawn_or_replayed(world: &World) {
    let office = Office::open(world);
    let terminal = Terminal::of(world, &office.admin);
    assert!(terminal.fails(&["trace", "run-0"]).contains("the log has no events of `run-0`"));
    assert!(terminal.fails(&["trace", "replay", "run-0"]).contains("RUN_NOT_FOUND"));
    office.admin.get("/api/v1/runs/run-0/replay").refused(404, "RUN_NOT_FOUND");
    // A run without policies has calls, and no decisions.
    office.agent.invokes(in_run("note", json!({"text": "hello"}))).ok();
    assert!(terminal.reads(&["trace", RUN]).starts_with("1 calls, "));
    let said = terminal.reads(&["trace", "replay", RUN]);
    assert!(said.starts_with("No decision of this execution was made by policies"), "{said}");
}
