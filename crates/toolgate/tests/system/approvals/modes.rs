//! Modes: which calls of a session pass without asking, who may raise them, and what no mode lets pass.

use serde_json::{Value, json};
use toolgate_testkit::gate_process::GateSetup;

use super::office::person;
use crate::world::{Actor, World, setup, text, until};

/// A gate with a workspace, whose sessions may be raised by whoever may answer.
fn with(change: impl FnOnce(GateSetup) -> GateSetup) -> (World, Actor, Actor) {
    let setup = setup();
    let root = setup.home().join("project");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("a.txt"), "hello").unwrap();
    let world = World::of(&change(setup.environment("TOOLGATE_WORKSPACE_ROOT", &root)), None);
    let admin = world.admin();
    let agent = admin.registers_as(&json!({"id": "coder", "scopes": ["workspace:*"]}));
    let owner = person(&admin, "owner", &["tools.invoke", "agents.act_as", "approvals.decide"], &["workspace:*"]);
    (world, agent, owner)
}

/// Uses a tool of the workspace, for the agent, in the owner's session.
fn uses(actor: &Actor, tool: &str, parameters: Value) -> crate::world::Reply {
    let body = json!({
        "tool": format!("x-host-toolgate-workspace.{tool}"), "parameters": parameters, "agent_id": "coder",
        "approval_session": {"name": "s"},
    });
    actor.post("/api/v1/tools/invoke", &body)
}

fn set(actor: &Actor, terms: Value) -> crate::world::Reply {
    actor.ask("PUT", "/api/v1/approval-sessions/s", Some(&terms))
}

/// One call of each kind; whether it passed without asking.
fn table(owner: &Actor) -> [bool; 3] {
    set(owner, json!({"ttl_seconds": 1})).ok();
    let calls = [
        ("Read", json!({"file_path": "a.txt"})),
        ("Write", json!({"file_path": "b.txt", "content": "b"})),
        ("Bash", json!({"command": "true"})),
    ];
    calls.map(|(tool, parameters)| match uses(owner, tool, parameters) {
        passed if passed.status() == 200 => true,
        refused => {
            refused.refused(403, "APPROVAL_TIMED_OUT");
            false
        }
    })
}

#[test]
fn the_tools_of_the_machine_are_there_for_the_tenants_of_the_configuration_only() {
    for (tenants, has_them) in [("default", false), ("default, acme", true)] {
        let (world, ..) = with(|setup| setup.environment("TOOLGATE_WORKSPACE_TENANTS", tenants));
        let acme = world.tenant("acme");
        // Whoever administers a tenant gives out what scopes it likes.
        let coder = acme.registers_as(&json!({"id": "coder", "scopes": ["workspace:*"]}));
        set(&coder, json!({"ttl_seconds": 1})).ok();
        let (status, code) = if has_them { (403, "APPROVAL_TIMED_OUT") } else { (404, "TOOL_NOT_FOUND") };
        for (tool, parameters) in [("Bash", json!({"command": "true"})), ("Read", json!({"file_path": "a.txt"}))] {
            uses(&coder, tool, parameters).refused(status, code);
        }
        let listed = coder.get("/v1/tools").ok().to_string();
        assert_eq!(listed.contains("toolgate-workspace"), has_them, "{listed}");
        let schema = acme.get("/api/v1/policies/schema").ok().to_string();
        assert_eq!(schema.contains("toolgate-workspace"), has_them);
    }
}

#[test]
fn the_table_of_the_protocol_holds_and_a_change_holds_at_once() {
    let (_world, _, owner) = with(|setup| setup.environment("TOOLGATE_APPROVALS_MODE_CHANGES", "on"));
    assert_eq!(table(&owner), [false, false, false]);
    assert_eq!(set(&owner, json!({"mode": "auto_edit"})).ok()["mode"], "auto_edit");
    assert_eq!(table(&owner), [true, true, false]);
    for force in ["force", "yolo", "dangerously_skip_permissions", "dangerously-skip-permissions"] {
        set(&owner, json!({"mode": "default"})).ok();
        assert_eq!(set(&owner, json!({"mode": force})).ok()["mode"], "force");
    }
    assert_eq!(table(&owner), [true, true, true]);
    set(&owner, json!({"mode": "default"})).ok();
    assert_eq!(table(&owner), [false, false, false]);
    set(&owner, json!({"mode": "Force"})).refused(400, "INVALID_FIELD");
}

#[test]
fn raising_a_mode_needs_an_operator_who_allows_it_and_lowering_it_does_not() {
    let (world, _, owner) = with(|setup| setup.environment("TOOLGATE_APPROVALS_MODE", "auto_edit"));
    assert_eq!(table(&owner), [true, true, false], "what the operator set is not gated");
    set(&owner, json!({"mode": "force"})).refused(403, "PERMISSION_DENIED");
    set(&owner, json!({"mode": "default"})).ok();
    set(&owner, json!({"mode": "auto_edit"})).refused(403, "PERMISSION_DENIED");
    let changes = world.admin().events("&type=approval_session.mode_changed");
    assert_eq!((&changes[0]["data"]["from"], &changes[0]["data"]["to"]), (&json!("auto_edit"), &json!("default")));
    assert_eq!(changes.len(), 1);
}

#[test]
fn an_agent_cannot_raise_its_own_mode_even_where_modes_may_be_raised() {
    let (_world, agent, _) = with(|setup| setup.environment("TOOLGATE_APPROVALS_MODE_CHANGES", "on"));
    set(&agent, json!({"mode": "force"})).refused(403, "PERMISSION_DENIED");
}

#[test]
fn the_highest_mode_clamps_what_the_operator_and_what_requests_say() {
    let (_world, _, owner) = with(|setup| {
        setup
            .environment("TOOLGATE_APPROVALS_MODE_CHANGES", "on")
            .environment("TOOLGATE_APPROVALS_MODE", "force")
            .environment("TOOLGATE_APPROVALS_HIGHEST_MODE", "auto_edit")
    });
    assert_eq!(table(&owner), [true, true, false]);
    set(&owner, json!({"mode": "force"})).refused(403, "PERMISSION_DENIED");
}

#[test]
fn a_change_of_mode_does_not_answer_calls_that_already_wait() {
    let (_world, _, owner) = with(|setup| setup.environment("TOOLGATE_APPROVALS_MODE_CHANGES", "on"));
    let caller = owner.clone();
    let thread = std::thread::spawn(move || uses(&caller, "Bash", json!({"command": "true"})));
    let pending = || owner.get("/api/v1/approvals?status=pending").ok()["approvals"].clone();
    let approval = until("a call that waits", || pending()[0]["id"].as_str().map(str::to_owned));
    set(&owner, json!({"mode": "force"})).ok();
    uses(&owner, "Bash", json!({"command": "true"})).ok();
    assert_eq!(pending()[0]["id"], approval.as_str(), "it still waits");
    owner.decides(&approval, "deny", json!({})).ok();
    thread.join().unwrap().refused(403, "APPROVAL_DENIED");
}

#[test]
fn a_question_always_asks_and_its_answer_is_its_output() {
    let (_world, _, owner) = with(|setup| setup.environment("TOOLGATE_APPROVALS_MODE", "force"));
    let caller = owner.clone();
    let question = json!({"question": "Where to?", "options": ["staging", "production"]});
    let thread = std::thread::spawn(move || uses(&caller, "AskUserQuestion", question));
    let pending = || owner.get("/api/v1/approvals?status=pending").ok()["approvals"].clone();
    let approval = until("a question", || pending()[0]["id"].as_str().map(str::to_owned));
    assert_eq!(pending()[0]["question"]["text"], "Where to?");
    owner.decides(&approval, "approve", json!({})).refused(400, "INVALID_FIELD");
    owner.decides(&approval, "approve", json!({"answer": "the moon"})).refused(400, "INVALID_FIELD");
    owner.decides(&approval, "approve", json!({"answer": "staging", "scope": "always"})).ok();
    assert_eq!(thread.join().unwrap().ok()["result"], "staging");
}

#[test]
fn an_answer_is_never_the_output_of_another_tool() {
    let (_world, _, owner) = with(|setup| setup);
    let caller = owner.clone();
    let thread = std::thread::spawn(move || uses(&caller, "Read", json!({"file_path": "a.txt"})));
    let pending = || owner.get("/api/v1/approvals?status=pending").ok()["approvals"].clone();
    let approval = until("a call that waits", || pending()[0]["id"].as_str().map(str::to_owned));
    let decided = owner.decides(&approval, "approve", json!({"answer": "made up"})).ok();
    assert_eq!(decided["answer"], Value::Null);
    let answer = thread.join().unwrap().ok();
    assert_eq!(text(&answer, "/result/output").trim(), "hello", "the tool ran: {answer}");
}

#[test]
fn a_workspace_that_the_tools_do_not_work_in_is_refused() {
    let (world, _, owner) = with(|setup| setup);
    let root = world.gate.setup().home().join("project").canonicalize().unwrap();
    let call = |workspace: &str| {
        let body = json!({
            "tool": "x-host-toolgate-workspace.Read", "parameters": {"file_path": "a.txt"}, "agent_id": "coder",
            "approval_session": {"name": "s", "workspace": workspace},
        });
        owner.post("/api/v1/tools/invoke", &body)
    };
    set(&owner, json!({"ttl_seconds": 1})).ok();
    call("/elsewhere").refused(400, "INVALID_FIELD");
    call(root.to_str().unwrap()).refused(403, "APPROVAL_TIMED_OUT");
}

#[test]
fn no_mode_lets_a_change_to_what_decides_pass() {
    let (_world, _, owner) = with(|setup| setup.environment("TOOLGATE_APPROVALS_MODE", "force"));
    set(&owner, json!({"ttl_seconds": 1})).ok();
    let protected = [
        ("Write", json!({"file_path": ".claude/settings.json", "content": "{}"})),
        ("Write", json!({"file_path": ".git/hooks/pre-commit", "content": "x"})),
        ("Bash", json!({"command": "toolgate approvals decide appr_1 --approve"})),
    ];
    for (tool, parameters) in protected {
        uses(&owner, tool, parameters).refused(403, "APPROVAL_TIMED_OUT");
    }
    uses(&owner, "Write", json!({"file_path": "notes.txt", "content": "x"})).ok();
}

#[test]
fn no_mode_lets_a_name_pass_that_leads_to_what_decides() {
    let (world, _, owner) = with(|setup| setup.environment("TOOLGATE_APPROVALS_MODE", "force"));
    set(&owner, json!({"ttl_seconds": 1})).ok();
    let root = world.gate.setup().home().join("project");
    std::fs::create_dir_all(root.join(".git/hooks")).unwrap();
    std::fs::write(root.join(".git/config"), "[core]\n").unwrap();
    std::os::unix::fs::symlink(".git/config", root.join("cfg")).unwrap();
    std::os::unix::fs::symlink(".git/hooks", root.join("scripts")).unwrap();
    for (tool, parameters) in [
        ("Edit", json!({"file_path": "cfg", "old_string": "core", "new_string": "alias"})),
        ("Write", json!({"file_path": "scripts/pre-commit", "content": "x"})),
        ("Bash", json!({"command": "cp ../../a.txt pre-commit", "working_directory": ".git/hooks"})),
        ("Bash", json!({"command": "cp ../a.txt pre-commit", "working_directory": "scripts"})),
        ("Bash", json!({"command": "cp a.txt cfg"})),
    ] {
        uses(&owner, tool, parameters).refused(403, "APPROVAL_TIMED_OUT");
    }
    assert_eq!(std::fs::read_to_string(root.join(".git/config")).unwrap(), "[core]\n");
    uses(&owner, "Bash", json!({"command": "cp a.txt b.txt"})).ok();
}

#[test]
fn a_command_neither_reads_nor_closes_what_the_gate_keeps_and_every_credential_goes_on() {
    let (world, _, owner) = with(|setup| {
        let config = setup.home().join("elsewhere.toml");
        std::fs::write(&config, "[approvals]\nmode = \"force\"\n").unwrap();
        setup.environment("TOOLGATE_CONFIG", &config)
    });
    let setup = world.gate.setup();
    let (keys, config) = (setup.configuration_home(), setup.home().join("elsewhere.toml"));
    std::fs::write(keys.join("token"), "http://gate saved-login-token").unwrap();
    let command = format!(
        "cat {config} {keys}/master.key {keys}/token; chmod 644 {keys}/master.key; chown 1:1 {keys}/master.key; \
         rm -f {keys}/master.key; unshare -Ur chmod 644 {keys}/master.key; true",
        config = config.display(),
        keys = keys.display(),
    );
    // In a file: a command line that names such places asks a person.
    std::fs::write(setup.home().join("project/probe.sh"), command).unwrap();
    let said = uses(&owner, "Bash", json!({"command": "bash probe.sh"})).ok();
    let output = text(&said, "/result/output");
    for secret in ["approvals", "saved-login-token", "\"keys\""] {
        assert!(!output.contains(secret), "{output}");
    }
    assert!(keys.join("master.key").exists());
    let admin = world.admin();
    let seals =
        || {
            admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &json!({
        "service": "shop", "label": "shop", "auth_type": "bearer_token", "scopes_available": ["any"],
        "metadata": {"base_url": "https://shop.example.com"}, "material": {"token": "sk_live_of_the_shop_4242"},
    }))
        };
    let credential = crate::world::id(&seals().created());
    // Whatever somebody else makes of the file: what was sealed still opens, and what is new is refused with the reason.
    std::fs::set_permissions(keys.join("master.key"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    assert_ne!(seals().status(), 201);
    admin.ask("POST", &format!("/api/v1/credentials/{credential}/verify"), None).ok();
}
