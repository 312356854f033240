//! Connecting clients: the agent, its key, the settings, the round trip, and back to the byte.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::*;
use crate::approvals::office::Office;

/// Where each client has its servers, and what is there before.
const CLIENTS: [(&str, &str, Option<&str>); 7] = [
    ("claude-code", ".claude.json", Some("{\n  \"numStartups\": 3,\n  \"mcpServers\": {}\n}")),
    ("cursor", ".cursor/mcp.json", None),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        Some("{\n\t// mine\n\t\"servers\": {\n\t\t\"a\": { \"command\": \"b\" }, // last\n\t},\n}\n"),
    ),
    ("codex", ".codex/config.toml", Some("# mine\nmodel = \"o3\"\r\n[mcp_servers.a]\ncommand = \"b\" # c")),
    ("gemini", ".gemini/settings.json", Some("{\"theme\": \"x\"}\n")),
    ("zed", ".config/zed/settings.json", Some("// Zed\n{\n  \"vim_mode\": true, // yes\n}\n")),
    ("windsurf", ".codeium/windsurf/mcp_config.json", Some("")),
];

#[test]
fn every_client_is_connected_as_an_agent_of_its_own_tested_and_given_back_to_the_byte() {
    let world = World::sqlite();
    for (client, file, before) in CLIENTS {
        let path = home(&world).join(file);
        if let Some(before) = before {
            write(&world, file, before);
        }
        let printed = run(&world, &["connect", client, "--print"]);
        assert_eq!(printed.code, 0, "{}", printed.all());
        assert!(printed.stdout.contains(&format!("Creates agent {client} and a key of it")), "{}", printed.all());
        assert!(printed.stdout.contains("toolgate") && printed.stdout.contains("--stdio"), "{}", printed.all());
        assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), before, "only shown");
        world.admin().get(&format!("/api/v1/agents/{client}")).expect(404);

        let unconfirmed = run(&world, &["connect", client]);
        assert_eq!(unconfirmed.code, 2, "{}", unconfirmed.all());
        let connected = run(&world, &["connect", client, "--yes"]);
        assert_eq!(connected.code, 0, "{}", connected.all());
        assert!(
            connected.stdout.contains(&format!("as agent {client}, which sees no tools yet")),
            "{}",
            connected.all()
        );
        let written = read(&path);
        assert!(
            before.unwrap_or_default().lines().all(|line| written.contains(line.trim_end_matches([',', '}']))),
            "{written}"
        );
        let key = logins(&world).lines().find(|line| line.contains(&format!(" {client} default "))).unwrap().to_owned();
        let key = key.rsplit(' ').next().unwrap();
        assert!(key.starts_with("tgk_") && !written.contains("tgk_") && !connected.all().contains("tgk_"), "{written}");
        let again = run(&world, &["connect", client, "--yes"]);
        assert_eq!((again.code, read(&path)), (0, written), "{}", again.all());
        assert!(again.stderr.contains("with the saved login"), "one key is enough: {}", again.all());

        let removed = run(&world, &["connect", client, "--remove", "--yes"]);
        assert_eq!(removed.code, 0, "{}", removed.all());
        assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), before, "{client}");
        let nothing = run(&world, &["connect", client, "--remove", "--yes"]);
        assert!(nothing.stdout.contains("is not connected"), "{}", nothing.all());
    }
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&world.gate.setup().configuration_home().join("token")), 0o600);
    // The agent's login is used only where it is named.
    let mut bare = world.gate.setup().command();
    let whoami = bare.env("TOOLGATE_URL", world.gate.url()).arg("whoami").output().unwrap();
    assert_eq!(whoami.status.code(), Some(1));
}

#[test]
fn the_agent_that_is_named_is_taken_and_its_tools_are_told() {
    let world = World::sqlite();
    let _office = Office::open(&world);
    let project = home(&world).join("shop");
    std::fs::create_dir(&project).unwrap();
    let connected = json(&world, &["connect", "claude-code", "--agent", "teller", "--project", "shop", "--yes"]);
    assert_eq!((&connected["agent"], &connected["profile"]), (&json!("teller"), &json!("teller")));
    let tools = connected["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("bank_balance")) && tools.len() == 6, "{connected}");
    let entry: Value = serde_json::from_str(&read(&project.join(".mcp.json"))).unwrap();
    assert_eq!(entry["mcpServers"]["toolgate"]["args"], json!(["mcp", "--stdio", "--profile", "teller"]));

    for (arguments, reason) in [
        (&["connect", "cursor", "--agent", "telller", "--yes"][..], "teller"),
        (&["connect", "cursor", "--agent", "clerk", "--yes"], "a client must be an agent"),
        (&["connect", "cursor", "--agent", "admin", "--yes"], "a client must be an agent"),
    ] {
        let refused = run(&world, arguments);
        assert!(refused.code == 1 && refused.stderr.contains("nothing was changed"), "{}", refused.all());
        assert!(refused.stderr.contains(reason), "{}", refused.all());
    }
    for usage in [&["connect", "zed", "--hooks"][..], &["connect", "windsurf", "--project", "."]] {
        assert_eq!(run(&world, usage).code, 2);
    }
    write(&world, ".cursor/mcp.json", "{\"mcpServers\": {\"toolgate\": {\"command\": \"other\"}}}");
    let taken = run(&world, &["connect", "cursor", "--yes"]);
    assert!(taken.code == 1 && taken.stderr.contains("pass --name"), "{}", taken.all());
    let beside = run(&world, &["connect", "cursor", "--name", "gate", "--agent", "teller", "--yes"]);
    assert_eq!(beside.code, 0, "{}", beside.all());
}

#[test]
fn hooks_are_added_with_the_same_login_and_both_are_removed() {
    let world = World::sqlite();
    // The servers and the hooks of Gemini CLI are in one file.
    for (client, files) in
        [("gemini", &[".gemini/settings.json"][..]), ("claude-code", &[".claude.json", ".claude/settings.json"])]
    {
        let before = "{\n  \"keep\": [1, 2]\n}\n";
        let paths: Vec<PathBuf> = files.iter().map(|file| write(&world, file, before)).collect();
        let connected = run(&world, &["connect", client, "--hooks", "--yes"]);
        assert_eq!(connected.code, 0, "{}", connected.all());
        let all: String = paths.iter().map(|path| read(path)).collect();
        assert!(all.contains(&format!("hook {client} --url {} --profile {client}", world.gate.url())), "{all}");
        assert!(all.contains("\"--stdio\""), "{all}");
        let removed = run(&world, &["connect", client, "--remove", "--yes"]);
        assert_eq!(removed.code, 0, "{}", removed.all());
        assert!(paths.iter().all(|path| read(path) == before), "{}", removed.all());
    }
}

#[test]
fn a_file_that_was_edited_since_loses_only_what_was_added() {
    let world = World::sqlite();
    let path = write(&world, ".config/zed/settings.json", "// Zed\n{\n  \"vim_mode\": true // yes\n}\n");
    assert_eq!(run(&world, &["connect", "zed", "--yes"]).code, 0);
    let edited = read(&path).replace("\"vim_mode\": true", "\"vim_mode\": false");
    std::fs::write(&path, &edited).unwrap();
    let removed = run(&world, &["connect", "zed", "--remove", "--yes"]);
    assert!(removed.code == 0 && removed.stdout.contains("was edited since"), "{}", removed.all());
    let text = read(&path);
    assert!(text.contains("\"vim_mode\": false // yes") && !text.contains("toolgate"), "{text}");
}

#[test]
fn an_agent_connects_with_its_own_login_and_what_does_not_work_is_told() {
    let world = World::sqlite();
    let agent = world.agent("coder", &["tools.invoke"]);
    let by_key = run_with(&world, &["connect", "cursor", "--yes"], &[("TOOLGATE_TOKEN", &agent.key)], "");
    assert!(by_key.code == 1 && by_key.stderr.contains("toolgate login"), "{}", by_key.all());
    let login = run_with(&world, &["login", "--profile", "mine"], &[], &agent.key);
    assert_eq!(login.code, 0, "{}", login.all());
    let connected = run(&world, &["connect", "cursor", "--profile", "mine", "--yes"]);
    assert_eq!(connected.code, 0, "{}", connected.all());
    assert!(read(&home(&world).join(".cursor/mcp.json")).contains("\"mine\""));
    let key = world.admin().get("/api/v1/agents/coder/keys").ok();
    world.admin().delete(&format!("/api/v1/keys/{}", key["keys"][0]["id"].as_str().unwrap())).ok();
    let revoked = run(&world, &["connect", "windsurf", "--profile", "mine", "--yes"]);
    assert!(revoked.code == 1 && revoked.stderr.contains("nothing was changed"), "{}", revoked.all());
    assert!(!home(&world).join(".codeium").exists());
    // An administrator replaces a key that is no longer valid.
    let replaced = run(&world, &["connect", "cursor", "--agent", "coder", "--yes"]);
    assert_eq!(replaced.code, 0, "{}", replaced.all());
    assert!(replaced.stderr.contains("Creates a key of agent coder"), "{}", replaced.all());
}
