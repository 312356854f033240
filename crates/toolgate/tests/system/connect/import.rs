//! Importing the servers of a client: mounts behind the gate, keys in the vault, processes for the operator.

use serde_json::json;
use toolgate_testkit::mcp_server::McpServer;

use super::*;

#[test]
fn servers_become_mounts_and_their_keys_go_to_the_vault() {
    let world = World::sqlite();
    let (plain, keyed) = (McpServer::start(true, false), McpServer::start(false, true));
    let settings = json!({"mcpServers": {
        "notes": {"type": "http", "url": plain.url()},
        "my docs": {"type": "http", "url": keyed.url(), "headers": {"Authorization": "Bearer sk_import_4242"}},
        "down": {"type": "http", "url": "http://127.0.0.1:1/mcp"},
        "old": {"type": "sse", "url": plain.url()},
        "files": {"command": "/usr/bin/server", "args": ["/srv"], "env": {"API_TOKEN": "sk_env_4242", "LEVEL": "1"}},
    }, "keep": 1});
    let before = format!("{settings:#}");
    let path = write(&world, ".claude.json", &before);

    let printed = run(&world, &["connect", "claude-code", "--import", "--print"]);
    assert_eq!(printed.code, 0, "{}", printed.all());
    assert!(!printed.all().contains("sk_import_4242") && !printed.all().contains("sk_env_4242"), "{}", printed.all());
    for line in ["[[mounts]]", "command = [\"/usr/bin/server\", \"/srv\"]", "credential = \"env:API_TOKEN\""] {
        assert!(printed.stdout.contains(line), "{}", printed.all());
    }
    assert_eq!(read(&path), before);

    let connected = run(&world, &["connect", "claude-code", "--import", "--yes"]);
    assert_eq!(connected.code, 0, "{}", connected.all());
    assert!(!connected.all().contains("4242"), "{}", connected.all());
    assert!(connected.stdout.contains("notes was mounted; 3 tools wait for review"), "{}", connected.all());
    assert!(connected.stdout.contains("down could not be imported and stays"), "{}", connected.all());
    assert!(connected.stderr.contains("Server old stays: it uses the old transport"), "{}", connected.all());
    let written: Value = serde_json::from_str(&read(&path)).unwrap();
    let mut left: Vec<&String> = written["mcpServers"].as_object().unwrap().keys().collect();
    left.sort();
    assert_eq!(left, ["down", "files", "old", "toolgate"]);
    let mounts = world.admin().get("/api/v1/mounts").ok();
    let names: Vec<&str> =
        mounts["mounts"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["my-docs", "notes"]);
    let sent = keyed.upstream().received();
    assert!(sent.iter().all(|request| request.bearer() == Some("sk_import_4242")), "the gate shows the key");

    // The same servers once more, as another client has them: they are mounted already.
    let cursor = json!({"mcpServers": {"notes": {"url": plain.url()}}}).to_string();
    let path = write(&world, ".cursor/mcp.json", &cursor);
    let again = run(&world, &["connect", "cursor", "--import", "--yes"]);
    assert!(again.code == 0 && again.stdout.contains("notes was mounted before"), "{}", again.all());
    assert!(!read(&path).contains("notes"));
    assert_eq!(run(&world, &["connect", "cursor", "--remove", "--yes"]).code, 0);
    assert_eq!(read(&path), cursor);
}

#[test]
fn processes_are_written_to_the_file_of_mounts_that_is_named() {
    let world = World::sqlite();
    let codex = "[mcp_servers.files]\ncommand = \"/usr/bin/server\"\nargs = [\"/srv\"]\n\n[mcp_servers.files.env]\nAPI_TOKEN = \"sk_env_4242\"\n";
    let path = write(&world, ".codex/config.toml", codex);
    let mounts = write(&world, "mounts.toml", "# of the operator\n");
    let connected = run(&world, &["connect", "codex", "--import", "--mounts-file", "mounts.toml", "--yes"]);
    assert_eq!(connected.code, 0, "{}", connected.all());
    assert!(connected.stdout.contains("toolgate mount add files --credential cred_"), "{}", connected.all());
    assert_eq!(
        read(&mounts),
        "# of the operator\n\n[[mounts]]\nname = \"files\"\ncommand = [\"/usr/bin/server\", \"/srv\"]\ncredential = \"env:API_TOKEN\"\n"
    );
    assert!(!read(&path).contains("files") && read(&path).contains("[mcp_servers.toolgate]"));
    // The gate of the operator takes the file.
    let mut check = world.gate.setup().command();
    let check = check.env("TOOLGATE_MOUNTS_FILE", &mounts).args(["config", "check"]).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
    assert_eq!(run(&world, &["connect", "codex", "--remove", "--yes"]).code, 0);
    assert_eq!(read(&path), codex);
}
