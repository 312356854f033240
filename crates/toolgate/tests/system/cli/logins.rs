//! Logins: several of them side by side, which one is used, and that a hook is connected only with a key that works.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use toolgate_testkit::gate_process::GateProcess;

use super::{Said, setup};

/// Somebody with nothing in the environment but a home.
fn says(gate: &GateProcess, arguments: &[&str], input: &str) -> Said {
    let mut command = gate.setup().command();
    command.args(arguments);
    Said::of(command, input)
}

fn key_of(gate: &GateProcess, agent: &str) -> String {
    let made = gate.request("POST", "/api/v1/agents", Some(&serde_json::json!({"id": agent})));
    assert_eq!(made.0, 201, "{}", made.1);
    let made = gate.request("POST", &format!("/api/v1/agents/{agent}/keys"), None);
    made.1["key"].as_str().unwrap().to_owned()
}

#[test]
fn a_login_of_an_agent_stands_beside_that_of_the_administrator() {
    let gate = setup().start();
    let key = key_of(&gate, "billing");
    let url = gate.url();
    let says = |arguments: &[&str], input: &str| says(&gate, arguments, input);
    let who = |arguments: &[&str]| says(&[&["whoami", "--json"], arguments].concat(), "").json();

    assert_eq!(says(&["login", "--url", &url], gate.token()).code, 0);
    let login = says(&["login"], &key);
    assert!(login.stdout.contains("The current profile is still admin"), "{}", login.all());
    let own = who(&[]);
    assert_eq!((&own["id"], &own["profile"], own["url"].as_str()), (&"admin".into(), &"admin".into(), Some(&*url)));
    assert_eq!(who(&["--profile", "billing"])["id"], "billing");
    let mut chosen = gate.setup().command();
    chosen.env("TOOLGATE_PROFILE", "billing").args(["whoami", "--json"]);
    assert_eq!(Said::of(chosen, "").json()["id"], "billing");
    assert_eq!(says(&["agent", "list"], "").code, 0, "the administrator is still logged in");

    let listed = says(&["profile", "list", "--json"], "").json();
    let names: Vec<&Value> = listed["profiles"].as_array().unwrap().iter().map(|profile| &profile["name"]).collect();
    assert_eq!(names, ["admin", "billing"]);
    assert!(!listed.to_string().contains(&key));
    let path = gate.setup().configuration_home().join("token");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let unknown = says(&["whoami", "--profile", "biling"], "");
    assert!(unknown.code == 1 && unknown.stderr.contains("known profiles: admin, billing"), "{}", unknown.all());
    let elsewhere = says(&["whoami", "--profile", "billing", "--url", "http://127.0.0.1:1"], "");
    assert!(elsewhere.code == 2 && elsewhere.stderr.contains(&format!("is for {url}")), "{}", elsewhere.all());

    assert_eq!(says(&["profile", "use", "billing"], "").code, 0);
    assert_eq!(who(&[])["id"], "billing");
    assert!(says(&["logout"], "").stdout.contains("Deleted: billing"));
    let nobody = says(&["whoami"], "");
    assert!(nobody.code == 1 && nobody.stderr.contains("toolgate profile use NAME`: admin"), "{}", nobody.all());
    assert_eq!(says(&["logout", "--all"], "").code, 0);
    assert!(says(&["logout"], "").stderr.contains("no login is saved"));
    assert!(!std::fs::read_to_string(path).unwrap().contains(gate.token()));
}

#[test]
fn a_login_of_an_earlier_version_is_taken_over() {
    let gate = setup().start();
    let (url, key) = (gate.url(), key_of(&gate, "billing"));
    let path = gate.setup().configuration_home().join("token");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("{url} {}\n", gate.token())).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(says(&gate, &["whoami", "--url", &url, "--json"], "").json()["id"], "admin");
    assert_eq!(says(&gate, &["login", "--profile", "hook"], &key).code, 0);
    assert_eq!(says(&gate, &["whoami", "--json"], "").json()["profile"], "admin");
    assert_eq!(says(&gate, &["whoami", "--profile", "hook", "--json"], "").json()["id"], "billing");
}

#[test]
fn a_hook_is_connected_to_the_gate_of_the_login_with_a_key_that_works() {
    let gate = setup().start();
    let key = key_of(&gate, "coder");
    let settings = gate.setup().home().join(".cursor/hooks.json");
    let mut bare = gate.setup().command();
    let home = gate.setup().home().to_owned();
    let run = |arguments: &[&str], input: &str| {
        let mut command = gate.setup().command();
        command.env("HOME", &home).args(arguments);
        Said::of(command, input)
    };
    bare.env("HOME", &home).args(["connect", "cursor", "--hooks-only", "--yes"]);
    let without = Said::of(bare, "");
    assert!(without.code == 1 && without.stderr.contains("toolgate login"), "{}", without.all());
    assert_eq!(run(&["login", "--url", &gate.url(), "--profile", "hook"], &key).code, 0);
    let connected = run(&["connect", "cursor", "--hooks-only", "--yes"], "");
    assert_eq!(connected.code, 0, "{}", connected.all());
    assert!(connected.stderr.contains(&format!("The hook uses {} as coder.", gate.url())), "{}", connected.all());
    let written = std::fs::read_to_string(&settings).unwrap();
    assert!(written.contains(&format!("hook cursor --url {} --profile hook || exit 2", gate.url())), "{written}");

    // What was written is what the client runs: without anything in the environment the gate is asked as the agent.
    let command = serde_json::from_str::<Value>(&written).unwrap()["hooks"]["preToolUse"][0]["command"].clone();
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(command.as_str().unwrap()).env_clear().env("HOME", &home);
    let config = gate.setup().configuration_home();
    shell.env("XDG_CONFIG_HOME", config.parent().unwrap());
    let asked = Said::of(shell, r#"{"hook_event_name": "sessionStart"}"#);
    assert_eq!(asked.code, 0, "{}", asked.all());

    let typo = run(&["connect", "cursor", "--hooks-only", "--yes", "--agent", "codr"], "");
    assert!(typo.code == 1 && typo.stderr.contains("nothing was changed"), "{}", typo.all());
    let keys = gate.request("GET", "/api/v1/agents/coder/keys", None).1;
    let id = keys["keys"][0]["id"].as_str().unwrap();
    assert_eq!(gate.request("DELETE", &format!("/api/v1/keys/{id}"), None).0, 200);
    let revoked = run(&["connect", "claude-code", "--hooks-only", "--yes"], "");
    assert!(revoked.code == 1 && revoked.stderr.contains("nothing was changed"), "{}", revoked.all());
    assert!(!home.join(".claude/settings.json").exists());
    assert_eq!(
        run(&["connect", "cursor", "--hooks-only", "--yes", "--remove"], "").code,
        0,
        "the hook goes without a key"
    );
    assert!(!settings.exists());
}
