//! The clients that can be connected: where each keeps its MCP servers, in which format, and what an entry looks like.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::servers::{Format, ServersFile};
use super::wiring::Place;
use crate::hook::HookClient;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConnectClient {
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Zed.
    Zed,
    /// Windsurf.
    Windsurf,
}

/// The command that a client starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub command: String,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
}

/// Why a client has no file at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoFile {
    Home,
    /// The client has servers only for all projects.
    Project,
}

impl ConnectClient {
    /// Its name on the command line, and the usual id of its agent.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Zed => "zed",
            Self::Windsurf => "windsurf",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::Vscode => "Visual Studio Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Zed => "Zed",
            Self::Windsurf => "Windsurf",
        }
    }

    /// `None` for a client without hooks.
    pub fn hooks(self) -> Option<HookClient> {
        match self {
            Self::ClaudeCode => Some(HookClient::ClaudeCode),
            Self::Cursor => Some(HookClient::Cursor),
            Self::Codex => Some(HookClient::Codex),
            Self::Gemini => Some(HookClient::Gemini),
            Self::Vscode | Self::Zed | Self::Windsurf => None,
        }
    }

    pub fn servers_file(self) -> ServersFile {
        let (format, key) = match self {
            Self::ClaudeCode | Self::Windsurf => (Format::Json, "mcpServers"),
            Self::Cursor | Self::Gemini => (Format::CommentedJson, "mcpServers"),
            Self::Vscode => (Format::CommentedJson, "servers"),
            Self::Codex => (Format::Toml, "mcp_servers"),
            Self::Zed => (Format::CommentedJson, "context_servers"),
        };
        ServersFile { format, key }
    }

    /// The file with the servers. `variable` reads the environment.
    pub fn file(self, place: &Place, variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, NoFile> {
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        if let Place::Project(directory) = place {
            return Ok(directory.join(match self {
                Self::ClaudeCode => ".mcp.json",
                Self::Cursor => ".cursor/mcp.json",
                Self::Vscode => ".vscode/mcp.json",
                Self::Codex => ".codex/config.toml",
                Self::Gemini => ".gemini/settings.json",
                Self::Zed => ".zed/settings.json",
                Self::Windsurf => return Err(NoFile::Project),
            }));
        }
        let home = || absolute("HOME").ok_or(NoFile::Home);
        let configuration = || absolute("XDG_CONFIG_HOME").map_or_else(|| Ok(home()?.join(".config")), Ok);
        Ok(match self {
            Self::ClaudeCode => absolute("CLAUDE_CONFIG_DIR").map_or_else(home, Ok)?.join(".claude.json"),
            Self::Cursor => home()?.join(".cursor/mcp.json"),
            Self::Vscode if cfg!(target_os = "macos") => home()?.join("Library/Application Support/Code/User/mcp.json"),
            Self::Vscode => configuration()?.join("Code/User/mcp.json"),
            Self::Codex => absolute("CODEX_HOME").map_or_else(|| Ok(home()?.join(".codex")), Ok)?.join("config.toml"),
            Self::Gemini => home()?.join(".gemini/settings.json"),
            Self::Zed => configuration()?.join("zed/settings.json"),
            Self::Windsurf => home()?.join(".codeium/windsurf/mcp_config.json"),
        })
    }

    /// The entry that lets the client start this command.
    pub fn entry(self, launch: &Launch) -> Value {
        let mut entry = Map::new();
        if matches!(self, Self::ClaudeCode | Self::Cursor | Self::Vscode) {
            entry.insert("type".to_owned(), json!("stdio"));
        }
        entry.insert("command".to_owned(), json!(launch.command));
        entry.insert("args".to_owned(), json!(launch.arguments));
        if !launch.environment.is_empty() {
            let variables = launch.environment.iter().map(|(name, value)| (name.clone(), json!(value)));
            entry.insert("env".to_owned(), Value::Object(variables.collect()));
        }
        Value::Object(entry)
    }

    /// What the user has to do next.
    pub fn next_step(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Restart running sessions; /mcp shows the server.",
            Self::Cursor => "Restart Cursor; its settings list the server under MCP.",
            Self::Vscode => "Run `MCP: List Servers` in VS Code to start it.",
            Self::Codex => "Restart running sessions; /mcp shows the server.",
            Self::Gemini => "Restart running sessions; /mcp shows the server.",
            Self::Zed => "Zed starts it when the file is saved; the settings of its agent list it.",
            Self::Windsurf => "Refresh the MCP servers in Windsurf.",
        }
    }
}

impl Launch {
    /// The command in an entry; `None` for a server that is not a process.
    pub fn of_entry(entry: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let arguments = match entry.get("args") {
            None | Some(Value::Null) => Vec::new(),
            Some(arguments) => arguments.as_array()?.iter().map(text).collect::<Option<_>>()?,
        };
        let environment = match entry.get("env") {
            None | Some(Value::Null) => Vec::new(),
            Some(variables) => {
                let variables = variables.as_object()?.iter();
                variables.map(|(name, value)| Some((name.clone(), text(value)?))).collect::<Option<_>>()?
            }
        };
        Some(Self { command: text(entry.get("command")?)?, arguments, environment })
    }

    /// Whether it is `toolgate mcp`, also of another installation.
    pub fn is_own(&self, program: &str) -> bool {
        let is_toolgate = self.command == program || self.command.rsplit('/').next() == Some("toolgate");
        is_toolgate && self.arguments.first().is_some_and(|word| word == "mcp")
    }
}
