//! The settings of each client, as its documentation has them: they gain a server and lose nothing.

use serde_json::{Value, json};

use super::super::servers::Format;
use super::*;

const ALL: [ConnectClient; 7] = [
    ConnectClient::ClaudeCode,
    ConnectClient::Cursor,
    ConnectClient::Vscode,
    ConnectClient::Codex,
    ConnectClient::Gemini,
    ConnectClient::Zed,
    ConnectClient::Windsurf,
];

fn launch() -> Launch {
    Launch {
        command: "/usr/bin/toolgate".to_owned(),
        arguments: ["mcp", "--stdio", "--profile", "coder"].map(str::to_owned).to_vec(),
        environment: Vec::new(),
    }
}

/// Settings as each client writes them.
fn sample(client: ConnectClient) -> &'static str {
    match client {
        ConnectClient::ClaudeCode => {
            "{\n  \"numStartups\": 12,\n  \"autoUpdates\": true,\n  \"projects\": {\n    \"/home/ann/shop\": {\n      \"allowedTools\": [],\n      \"history\": [\n        {\n          \"display\": \"fix } the \\\"mcpServers\\\" bug\"\n        }\n      ],\n      \"mcpServers\": {},\n      \"lastCost\": 0.30000000000000004\n    }\n  },\n  \"mcpServers\": {\n    \"github\": {\n      \"type\": \"http\",\n      \"url\": \"https://api.githubcopilot.com/mcp/\",\n      \"headers\": {\n        \"Authorization\": \"Bearer ghp_1\"\n      }\n    }\n  }\n}"
        }
        ConnectClient::Cursor => {
            "{\n    \"mcpServers\": {\n        \"memory\": {\n            \"command\": \"npx\",\n            \"args\": [\"-y\", \"@modelcontextprotocol/server-memory\"]\n        }\n    }\n}\n"
        }
        ConnectClient::Vscode => {
            "{\n\t// Servers of everybody\n\t\"servers\": {\n\t\t\"playwright\": {\n\t\t\t\"command\": \"npx\",\n\t\t\t\"args\": [\"@playwright/mcp@latest\"], // newest\n\t\t},\n\t},\n\t\"inputs\": []\n}\n"
        }
        ConnectClient::Codex => {
            "# Codex\nmodel = \"gpt-5\"\nnotify = [\"python3\", \"/home/ann/notify.py\"]\n\n[mcp_servers.docs]\nurl = \"https://docs.example.com/mcp\" # public\nbearer_token_env_var = \"DOCS_TOKEN\"\n\n[mcp_servers.files]\ncommand = \"npx\"\nargs = [\n  \"-y\",\n  \"server\",\n]\n\n[mcp_servers.files.env]\nLOG = \"1\"\n\n# everything below is local\n[projects.\"/home/ann/shop\"]\ntrust_level = \"trusted\"\n"
        }
        ConnectClient::Gemini => {
            "{\n  \"theme\": \"Dracula\",\n  \"mcpServers\": {\n    \"git\": {\n      \"command\": \"uvx\",\n      \"args\": [\n        \"mcp-server-git\"\n      ]\n    }\n  }\n}\n"
        }
        ConnectClient::Zed => {
            "// Zed settings\n//\n// For information on how to configure Zed, see the documentation\n{\n  \"ui_font_size\": 16,\n  \"theme\": {\n    \"mode\": \"system\", // or \"dark\"\n    \"light\": \"One Light\",\n  },\n  /* servers: { } */\n  \"vim_mode\": false // not yet\n}\n"
        }
        ConnectClient::Windsurf => {
            "{\r\n  \"mcpServers\": {\r\n    \"figma\": {\r\n      \"serverUrl\": \"https://mcp.example.com/mcp\"\r\n    }\r\n  }\r\n}\r\n"
        }
    }
}

#[test]
fn every_client_gains_the_server_and_loses_nothing() {
    for client in ALL {
        let (file, text, entry) = (client.servers_file(), sample(client), client.entry(&launch()));
        let with = file.with(text, "toolgate", &entry).unwrap();
        assert_eq!(file.servers(&with).unwrap()["toolgate"], entry, "{with}");
        assert_eq!(file.with(&with, "toolgate", &entry).unwrap(), with, "twice is once");
        // Everything that was there is there, in its order.
        let mut rest = with.as_str();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let bare = line.trim_end_matches(',');
            let place = rest.find(bare).unwrap_or_else(|| panic!("{client:?} lost {line:?}: {with}"));
            rest = rest.get(place + bare.len()..).unwrap();
        }
        let without = file.without(&with, "toolgate").unwrap();
        match client {
            // The member for the servers, which is new, stays behind where nobody remembers the file.
            ConnectClient::Zed => assert_eq!(without.replace("\n  \"context_servers\": {},", ""), text),
            _ => assert_eq!(without, text, "{client:?}"),
        }
        assert!(Launch::of_entry(&entry).unwrap().is_own("/opt/toolgate"));
    }
}

#[test]
fn new_files_are_those_of_the_documentation() {
    let text = |client: ConnectClient| client.servers_file().with("", "toolgate", &client.entry(&launch())).unwrap();
    let stdio = |key: &str, kind: &str| {
        format!(
            "{{\n  \"{key}\": {{\n    \"toolgate\": {{\n{kind}      \"command\": \"/usr/bin/toolgate\",\n      \"args\": [\n        \"mcp\",\n        \"--stdio\",\n        \"--profile\",\n        \"coder\"\n      ]\n    }}\n  }}\n}}\n"
        )
    };
    let typed = "      \"type\": \"stdio\",\n";
    assert_eq!(text(ConnectClient::ClaudeCode), stdio("mcpServers", typed));
    assert_eq!(text(ConnectClient::Cursor), stdio("mcpServers", typed));
    assert_eq!(text(ConnectClient::Vscode), stdio("servers", typed));
    assert_eq!(text(ConnectClient::Gemini), stdio("mcpServers", ""));
    assert_eq!(text(ConnectClient::Windsurf), stdio("mcpServers", ""));
    assert_eq!(text(ConnectClient::Zed), stdio("context_servers", ""));
    assert_eq!(
        text(ConnectClient::Codex),
        "[mcp_servers.toolgate]\ncommand = \"/usr/bin/toolgate\"\nargs = [\"mcp\", \"--stdio\", \"--profile\", \"coder\"]\n"
    );
    for client in ALL {
        assert!(client.servers_file().is_empty("") && !client.servers_file().is_empty(&text(client)));
    }
}

#[test]
fn other_servers_are_removed_with_all_that_belongs_to_them_and_nothing_else() {
    let codex = ConnectClient::Codex.servers_file();
    let text = codex.without(sample(ConnectClient::Codex), "files").unwrap();
    let text = codex.without(&text, "docs").unwrap();
    assert_eq!(
        text,
        "# Codex\nmodel = \"gpt-5\"\nnotify = [\"python3\", \"/home/ann/notify.py\"]\n\n# everything below is local\n[projects.\"/home/ann/shop\"]\ntrust_level = \"trusted\"\n"
    );
    let claude = ConnectClient::ClaudeCode.servers_file();
    let text = claude.without(sample(ConnectClient::ClaudeCode), "github").unwrap();
    assert!(text.ends_with("  \"mcpServers\": {}\n}") && !text.contains("ghp_1"), "{text}");
}

#[test]
fn settings_that_are_not_understood_are_left_alone() {
    let entry = ConnectClient::Cursor.entry(&launch());
    for client in ALL {
        let file = client.servers_file();
        let bad: &[&str] = match file.format {
            Format::Toml => &["a = ", "mcp_servers = 1\n", "mcp_servers = { a = { command = \"x\" } }\n"],
            Format::Json => &["{", "[]", "// comment\n{}", "{\"a\": 1,}"],
            Format::CommentedJson => &["{", "[]", "{\"a\" 1}", "{,}"],
        };
        for text in bad {
            assert!(file.with(text, "toolgate", &entry).is_err(), "{client:?}: {text}");
        }
        if file.format != Format::Toml {
            let wrong = format!("{{\"{}\": []}}", file.key);
            assert!(file.with(&wrong, "toolgate", &entry).is_err());
            let twice = format!("{{\"{0}\": {{}}, \"{0}\": {{}}}}", file.key);
            assert!(file.with(&twice, "toolgate", &entry).is_err(), "the client would read the other one");
        }
    }
    let inline = "[mcp_servers]\ndocs = { url = \"https://docs.example.com\" }\n";
    let codex = ConnectClient::Codex.servers_file();
    assert!(codex.with(inline, "toolgate", &entry).is_ok());
    assert!(codex.without(inline, "docs").is_err(), "it has no header of its own");
}

#[test]
fn the_files_of_servers_are_where_the_clients_look() {
    let variable = |name: &str| match name {
        "HOME" => Some("/home/ann".into()),
        "CODEX_HOME" => Some("/srv/codex".into()),
        _ => None,
    };
    let project = Place::Project("/shop".into());
    let code = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
    for (client, of_user, of_project) in [
        (ConnectClient::ClaudeCode, "/home/ann/.claude.json".to_owned(), "/shop/.mcp.json"),
        (ConnectClient::Cursor, "/home/ann/.cursor/mcp.json".to_owned(), "/shop/.cursor/mcp.json"),
        (ConnectClient::Vscode, format!("/home/ann/{code}/Code/User/mcp.json"), "/shop/.vscode/mcp.json"),
        (ConnectClient::Codex, "/srv/codex/config.toml".to_owned(), "/shop/.codex/config.toml"),
        (ConnectClient::Gemini, "/home/ann/.gemini/settings.json".to_owned(), "/shop/.gemini/settings.json"),
        (ConnectClient::Zed, "/home/ann/.config/zed/settings.json".to_owned(), "/shop/.zed/settings.json"),
    ] {
        assert_eq!(client.file(&Place::User, variable).unwrap().display().to_string(), of_user);
        assert_eq!(client.file(&project, variable).unwrap().display().to_string(), of_project);
        assert_eq!(client.file(&Place::User, |_| None), Err(NoFile::Home));
    }
    let windsurf = ConnectClient::Windsurf.file(&Place::User, variable).unwrap();
    assert_eq!(windsurf.display().to_string(), "/home/ann/.codeium/windsurf/mcp_config.json");
    assert_eq!(ConnectClient::Windsurf.file(&project, variable), Err(NoFile::Project));
}

#[test]
fn servers_of_others_are_never_taken_for_own_ones() {
    for (entry, own) in [
        (json!({"command": "toolgate", "args": ["mcp", "--stdio"]}), true),
        (json!({"command": "/a b/toolgate", "args": ["mcp"], "env": {"A": "1"}}), true),
        (json!({"command": "mytoolgate", "args": ["mcp"]}), false),
        (json!({"command": "toolgate", "args": ["host"]}), false),
        (json!({"command": "toolgate"}), false),
        (json!({"url": "https://toolgate/mcp"}), false),
        (Value::Null, false),
    ] {
        assert_eq!(is_own(&entry, "/usr/bin/toolgate"), own, "{entry}");
    }
}
