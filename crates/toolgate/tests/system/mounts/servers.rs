//! Servers that other people wrote, unmodified, as people install them: `server-everything` over stdio and HTTP,
//! `server-filesystem` and `server-memory`. Each is mounted, reviewed, accepted, listed and called.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::accepted::Accepted;
use crate::node;
use crate::world::{Actor, World, setup, text};

#[test]
fn the_reference_server_is_mounted_over_stdio_and_over_http() {
    let entry = node::package("@modelcontextprotocol/server-everything/dist/index.js");
    let listening = Listening::start(&entry);
    let world =
        processes(&format!("[[mounts]]\nname = \"stdio\"\ncommand = {}\n", json!([node::node(), entry, "stdio"])));
    let agent = world.agent("agent", &["tools.invoke"]);
    for (name, url) in [("stdio", None), ("http", Some(listening.url()))] {
        let tools = ["echo", "get-sum", "get-structured-content", "get-tiny-image"];
        Accepted::of(&world.admin(), name, url.as_deref(), &tools).grant(&agent);
        let listed = agent.mcp_tools();
        assert!(tools.iter().all(|tool| listed.contains(&format!("{name}_{tool}"))), "{listed:?}");
        assert!(!listed.contains(&format!("{name}_get-env")), "what was not accepted is not listed: {listed:?}");

        let call = |tool: &str, arguments| agent.mcp_call(&format!("{name}_{tool}"), arguments);
        assert_eq!(text(&call("echo", json!({"message": "hello"})), "/content/0/text"), "Echo: hello");
        assert!(text(&call("get-sum", json!({"a": 2, "b": 3})), "/content/0/text").contains('5'));
        let weather = call("get-structured-content", json!({"location": "Chicago"}));
        assert!(weather["structuredContent"]["temperature"].is_number(), "{weather}");
        let image = call("get-tiny-image", json!({}));
        let blocks = image["content"].as_array().unwrap();
        assert!(blocks.iter().any(|block| block["mimeType"] == "image/png"), "{image}");
        // The gate checks arguments before the server sees them.
        let refused = call("get-sum", json!({"a": "two", "b": 3}));
        assert_eq!(
            (&refused["isError"], &refused["_meta"]["toolgate/code"]),
            (&json!(true), &json!("PARAMETERS_INVALID"))
        );
    }
    let resources = agent.mcp("resources/list", json!({})).rpc();
    assert!(!resources["resources"].as_array().unwrap().is_empty(), "{resources}");
    let prompts = agent.mcp("prompts/list", json!({})).rpc();
    assert!(!prompts["prompts"].as_array().unwrap().is_empty(), "{prompts}");
}

#[test]
fn the_filesystem_server_reads_and_writes_where_it_may() {
    let shared = tempfile::tempdir().unwrap();
    let directory = shared.path().canonicalize().unwrap();
    std::fs::write(directory.join("note.txt"), "the note").unwrap();
    let entry = node::package("@modelcontextprotocol/server-filesystem/dist/index.js");
    let command = json!([node::node(), entry, directory]);
    let world =
        processes(&format!("[[mounts]]\nname = \"files\"\ncommand = {command}\nwritable = {}\n", json!([directory])));
    let agent = world.agent("agent", &["tools.invoke"]);
    Accepted::of(&world.admin(), "files", None, &["read_text_file", "write_file", "list_directory"]).grant(&agent);
    let path = |name: &str| directory.join(name).display().to_string();
    let read = agent.mcp_call("files_read_text_file", json!({"path": path("note.txt")}));
    assert_eq!(text(&read, "/content/0/text"), "the note");
    let written = agent.mcp_call("files_write_file", json!({"path": path("new.txt"), "content": "written"}));
    assert_eq!(written.get("isError"), None, "{written}");
    assert_eq!(std::fs::read_to_string(directory.join("new.txt")).unwrap(), "written");
    let listed = agent.mcp_call("files_list_directory", json!({"path": directory}));
    assert!(text(&listed, "/content/0/text").contains("[FILE] new.txt"), "{listed}");
    let outside = agent.mcp_call("files_read_text_file", json!({"path": "/etc/hostname"}));
    assert_eq!((&outside["isError"], &outside["_meta"]["toolgate/code"]), (&json!(true), &json!("SERVICE_ERROR")));
}

#[test]
fn the_memory_server_keeps_the_memory_of_each_principal_apart() {
    let entry = node::package("@modelcontextprotocol/server-memory/dist/index.js");
    // A file for each process, and with `stateful` a process for each principal.
    let start = "export MEMORY_FILE_PATH=\"$(mktemp -d)/memory.jsonl\"; exec \"$0\" \"$@\"";
    let command = json!(["/bin/sh", "-c", start, node::node(), entry]);
    let world = processes(&format!("[[mounts]]\nname = \"memory\"\ncommand = {command}\nstateful = true\n"));
    let mount = Accepted::of(&world.admin(), "memory", None, &["create_entities", "read_graph"]);
    let [one, other] = ["one", "other"].map(|name| {
        let agent = world.agent(name, &["tools.invoke"]);
        mount.grant(&agent);
        agent
    });
    let remember = |agent: &Actor, name: &str| {
        let entity = json!({"name": name, "entityType": "person", "observations": ["likes tea"]});
        let made = agent.mcp_call("memory_create_entities", json!({"entities": [entity]}));
        assert_eq!(made.get("isError"), None, "{made}");
    };
    let remembered = |agent: &Actor| -> Vec<String> {
        let graph = agent.mcp_call("memory_read_graph", json!({}));
        let entities = graph["structuredContent"]["entities"].as_array().unwrap_or_else(|| panic!("{graph}"));
        entities.iter().map(|entity| text(entity, "/name").to_owned()).collect()
    };
    remember(&one, "ann");
    remember(&one, "bob");
    remember(&other, "eve");
    assert_eq!(
        (remembered(&one), remembered(&other)),
        (vec!["ann".to_owned(), "bob".to_owned()], vec!["eve".to_owned()])
    );
}

/// A gate with these processes.
fn processes(mounts: &str) -> World {
    let setup = setup().reaching_loopback();
    let file = setup.home().join("mounts.toml");
    std::fs::write(&file, mounts).unwrap();
    World::of(&setup.environment("TOOLGATE_MOUNTS_FILE", file), None)
}

/// The reference server over HTTP, which ends with the test.
struct Listening {
    process: Child,
    port: u16,
}

impl Listening {
    fn start(entry: &str) -> Self {
        let preload = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/loopback.cjs");
        let mut process = Command::new(node::node())
            .env_clear()
            .arg("--require")
            .arg(preload)
            .args([entry, "streamableHttp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| line.unwrap().strip_prefix("listening on ")?.parse().ok());
        // It prints a line for each request, and ends if nobody reads them.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, port: port.expect("the server listens") }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
