//! Mounts of the configuration: they follow it, and nothing of them is usable before a person has accepted it.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolgate_testkit::gate_process::GateSetup;
use toolgate_testkit::mcp_server::{McpProcess, McpServer};

use crate::world::{Actor, World, setup, text, until};

struct Declared {
    setup: GateSetup,
    file: PathBuf,
}

impl Declared {
    fn new(mounts: &str) -> Self {
        let setup = setup().reaching_loopback();
        let file = setup.home().join("mounts.toml");
        let declared = Self { setup: setup.environment("TOOLGATE_MOUNTS_FILE", &file), file };
        declared.write(mounts);
        declared
    }

    fn write(&self, mounts: &str) {
        std::fs::write(&self.file, mounts).unwrap();
    }

    fn start(&self) -> World {
        World::of(&self.setup, None)
    }
}

fn mounted(admin: &Actor, name: &str) -> Value {
    until("it is mounted", || {
        let shown = admin.get(&format!("/api/v1/mounts/{name}"));
        (shown.status() == 200).then(|| shown.ok())
    })
}

pub fn accept(admin: &Actor, name: &str) {
    let review = admin.get(&format!("/api/v1/mounts/{name}/review")).ok();
    let tools = review["tools"].as_array().unwrap().iter();
    let tools: serde_json::Map<String, Value> =
        tools.map(|tool| (text(tool, "/upstream").to_owned(), tool["hash"].clone())).collect();
    let accepted = json!({"server": review["server"]["hash"], "tools": tools});
    admin.post(&format!("/api/v1/mounts/{name}/accept"), &accepted).ok();
}

/// The credential that was made for a mount.
pub fn credential(admin: &Actor, name: &str) -> Value {
    let vaults = admin.get("/api/v1/vaults").ok();
    let vault = vaults["vaults"].as_array().unwrap().iter().find(|vault| vault["name"] == "mounts").unwrap();
    let listed = admin.get(&format!("/api/v1/vaults/{}/credentials", text(vault, "/id"))).ok();
    let mut own = listed["credentials"].as_array().unwrap().iter().filter(|one| one["service"] == name);
    let found = own.next().unwrap().clone();
    assert!(own.next().is_none(), "one is made: {listed}");
    found
}

fn events(admin: &Actor, kind: &str) -> Vec<Value> {
    let listed = admin.get(&format!("/api/v1/audit/events?type={kind}&limit=100")).ok();
    listed["events"].as_array().unwrap().clone()
}

#[test]
fn a_server_over_http_follows_its_entry() {
    let server = McpServer::start(true, false);
    let entry = |further: &str| {
        format!("[[mounts]]\nname = \"tracker\"\nurl = \"{}\"\nsecret = \"file:token\"\n{further}", server.url())
    };
    let declared = Declared::new(&entry(""));
    let token = declared.setup.home().join("token");
    std::fs::write(&token, "first-secret-of-the-tracker\n").unwrap();

    let world = declared.start();
    let admin = world.admin();
    let shown = mounted(&admin, "tracker");
    assert_eq!((&shown["accepted"], &shown["quarantined"]), (&json!(0), &json!(3)), "{shown}");
    let added = events(&admin, "mount.added");
    assert_eq!((added.len(), text(&added[0], "/actor")), (1, "core.system"));
    accept(&admin, "tracker");
    let known = credential(&admin, "tracker");
    let agent = world.agent("agent", &["tools.invoke"]);
    admin.grants(text(&known, "/id"), "agent", json!({"scopes": ["whoami"]}));
    let call = |agent: &Actor| {
        agent.post("/api/v1/tools/invoke", &json!({"tool": "tracker.whoami", "parameters": {}})).ok();
        let sent = server.upstream().received();
        sent.last().unwrap().header("authorization").unwrap().to_owned()
    };
    assert_eq!(call(&agent), "Bearer first-secret-of-the-tracker");
    world.stop();

    // The same entry changes nothing; another secret replaces the sealed one, and grants go on.
    std::fs::write(&token, "other-secret-of-the-tracker\n").unwrap();
    let world = declared.start();
    let (admin, agent) = (world.admin(), world.actor("agent", &agent.key));
    assert_eq!(call(&agent), "Bearer other-secret-of-the-tracker");
    let now = credential(&admin, "tracker");
    assert_eq!((&now["id"], &now["version"]), (&known["id"], &json!(2)));
    assert_eq!(admin.get("/api/v1/mounts/tracker").ok()["accepted"], 3);
    world.stop();

    // Another setting is another decision: all of it has to be accepted again.
    declared.write(&entry("trusted = true\n"));
    let world = declared.start();
    let admin = world.admin();
    until("it is mounted anew", || (events(&admin, "mount.added").len() == 2).then_some(()));
    assert_eq!(mounted(&admin, "tracker")["accepted"], 0);
    let body = json!({"tool": "tracker.whoami", "parameters": {}});
    world.actor("agent", &agent.key).post("/api/v1/tools/invoke", &body).refused(409, "TOOL_NOT_EXECUTABLE");
    world.stop();

    declared.write("");
    let world = declared.start();
    let admin = world.admin();
    until("it is removed", || (admin.get("/api/v1/mounts/tracker").status() == 404).then_some(()));
    let removed = events(&admin, "mount.removed");
    assert_eq!((removed.len(), text(&removed[1], "/actor")), (2, "core.system"));
}

#[test]
fn a_process_is_mounted_without_an_administrator_and_what_one_has_mounted_stays() {
    let program = McpProcess::new();
    let server = McpServer::start(true, false);
    let command = json!(program.command());
    let declared = Declared::new(&format!("[[mounts]]\nname = \"counter\"\ncommand = {command}\n"));
    let world = declared.start();
    let admin = world.admin();
    assert_eq!(mounted(&admin, "counter")["quarantined"], 1);
    accept(&admin, "counter");
    let agent = world.agent("agent", &["tools.invoke"]);
    admin.grants(text(&credential(&admin, "counter"), "/id"), "agent", json!({"scopes": ["count"]}));
    let called = agent.post("/api/v1/tools/invoke", &json!({"tool": "counter.count", "parameters": {}})).ok();
    assert!(text(&called, "/result/content/0/text").starts_with("1 of "), "{called}");
    admin.post("/api/v1/mounts", &json!({"name": "own", "url": server.url()})).created();
    world.stop();

    // A mount of an administrator is not the configuration's to change.
    declared.write("[[mounts]]\nname = \"own\"\nurl = \"https://another.example/mcp\"\n");
    let world = declared.start();
    let admin = world.admin();
    until("the process is gone", || (admin.get("/api/v1/mounts/counter").status() == 404).then_some(()));
    assert_eq!(admin.get("/api/v1/mounts/own").ok()["url"], server.url());
    let (ended, _) = world.stop();
    assert!(ended.stderr.contains("an administrator has mounted another server as `own`"), "{}", ended.stderr);
}

#[test]
fn a_process_that_another_command_starts_is_another_server_until_a_person_accepts_it() {
    let program = McpProcess::new();
    let entry = |further: &[&str]| {
        let command = [program.command(), further.iter().map(|word| (*word).to_owned()).collect()].concat();
        format!("[[mounts]]\nname = \"counter\"\ncommand = {}\n", json!(command))
    };
    let declared = Declared::new(&entry(&[]));
    let world = declared.start();
    let admin = world.admin();
    mounted(&admin, "counter");
    accept(&admin, "counter");
    let agent = world.agent("agent", &["tools.invoke"]);
    admin.grants(text(&credential(&admin, "counter"), "/id"), "agent", json!({"scopes": ["count"]}));
    let body = json!({"tool": "counter.count", "parameters": {}});
    agent.post("/api/v1/tools/invoke", &body).ok();
    let accepted = admin.get("/api/v1/mounts/counter").ok();
    assert!(text(&accepted, "/server/command").starts_with("sha256:"), "{accepted}");
    world.stop();

    // The same file changes nothing.
    let world = declared.start();
    world.actor("agent", &agent.key).post("/api/v1/tools/invoke", &body).ok();
    world.stop();

    declared.write(&entry(&["--also", "this"]));
    let world = declared.start();
    let (admin, agent) = (world.admin(), world.actor("agent", &agent.key));
    // From the first moment on.
    agent.post("/api/v1/tools/invoke", &body).refused(409, "TOOL_NOT_EXECUTABLE");
    let shown = admin.get("/api/v1/mounts/counter").ok();
    assert_eq!(shown["server_state"], "replaced", "{shown}");
    assert_ne!(shown["server"]["command"], accepted["server"]["command"]);
    let quarantined = events(&admin, "mount.server.quarantined");
    assert_eq!((quarantined.len(), &quarantined[0]["data"]["replaced"]), (1, &json!(true)));
    let review = admin.get("/api/v1/mounts/counter/review").ok();
    admin.post("/api/v1/mounts/counter/accept", &json!({"server": review["server"]["hash"], "tools": {}})).ok();
    agent.post("/api/v1/tools/invoke", &body).ok();
}

#[test]
fn a_server_that_cannot_be_reached_keeps_nobody_from_starting_and_is_mounted_later() {
    let server = McpServer::start(true, false);
    let entry = |url: &str| format!("[[mounts]]\nname = \"later\"\nurl = \"{url}\"\n");
    let declared = Declared::new(&entry("http://127.0.0.1:9/mcp"));
    let world = declared.start();
    assert_eq!(world.admin().get("/api/v1/mounts/later").status(), 404);
    world.stop();
    declared.write(&entry(&server.url()));
    let world = declared.start();
    mounted(&world.admin(), "later");
}

#[test]
fn what_is_wrong_with_an_entry_is_said_with_its_file_before_anything_starts() {
    let declared =
        Declared::new("[[mounts]]\nname = \"a\"\nurl = \"https://a.example/\"\nsecret = \"sk_live_12345\"\n");
    let checked = declared.setup.command().args(["config", "check"]).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(!checked.status.success() && said.contains("mounts.toml: mount `a`: `secret` must be file:PATH"), "{said}");
    assert!(!said.contains("sk_live_12345"), "{said}");
    let refused = declared.setup.start_refused();
    assert!(refused.stderr.contains("mount `a`: `secret` must be file:PATH"), "{}", refused.stderr);
    declared.write("[[mounts]]\nname = \"a\"\nurl = \"https://a.example/\"\ntenants = [\"nobody\"]\n");
    let refused = declared.setup.start_refused();
    assert!(refused.stderr.contains("mount `a`: there is no tenant `nobody`"), "{}", refused.stderr);
}
