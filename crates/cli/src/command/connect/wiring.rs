//! The settings of each client: the file, the events and the format of hooks, and how entries of Toolgate are recognized.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::hook::HookClient;

/// The timeout of the client: longer than that of the hook, because the client allows the call when it gives up.
const TIMEOUT_SECONDS: u64 = 3_660;

pub struct Wiring {
    pub client: HookClient,
    /// Quoted for the shell.
    program: String,
    /// The options after the name of the client.
    options: String,
}

pub enum Place {
    /// The project in this directory.
    Project(PathBuf),
    /// All projects of the user.
    User,
}

#[derive(Default)]
pub struct Target {
    pub url: Option<String>,
    pub profile: Option<String>,
    /// The agent of the calls, if the key belongs to another principal.
    pub agent: Option<String>,
}

impl Wiring {
    pub fn new(client: HookClient, program: &str, target: &Target) -> Self {
        let option =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| format!(" {name} {}", word(value)));
        let options = [("--url", &target.url), ("--profile", &target.profile), ("--agent", &target.agent)];
        let options = options.into_iter().filter_map(|(name, value)| option(name, value)).collect();
        Self { client, program: word(program), options }
    }

    /// The command that the client runs. The shell maps every failure, such as a missing program, to the exit status that
    /// blocks.
    pub fn command(&self) -> String {
        format!("{} hook {}{} || exit 2", self.program, self.client.name(), self.options)
    }

    /// Whether a command in the settings is the hook of Toolgate for this client, also of another installation.
    pub fn is_own(&self, command: &str) -> bool {
        let Some((program, rest)) = command.split_once(" hook ") else { return false };
        let file = program.trim_matches(['\'', '"']).rsplit('/').next();
        (program == self.program || file == Some("toolgate"))
            && rest.split_whitespace().next() == Some(self.client.name())
    }

    /// The events and their entries.
    pub fn entries(&self) -> Vec<(&'static str, Value)> {
        let command = self.command();
        let group = |handler: Value| json!({"matcher": "*", "hooks": [handler]});
        let seconds = json!({"type": "command", "command": command, "timeout": TIMEOUT_SECONDS});
        match self.client {
            HookClient::ClaudeCode => vec![("PreToolUse", group(seconds))],
            HookClient::Codex => vec![("PreToolUse", group(seconds.clone())), ("PermissionRequest", group(seconds))],
            HookClient::Gemini => {
                let milliseconds = TIMEOUT_SECONDS * 1_000;
                let handler =
                    json!({"name": "toolgate", "type": "command", "command": command, "timeout": milliseconds});
                vec![("BeforeTool", group(handler))]
            }
            HookClient::Cursor => {
                let entry = json!({"command": command, "timeout": TIMEOUT_SECONDS, "failClosed": true});
                vec![("preToolUse", entry)]
            }
        }
    }

    /// Whether entries are lists of handlers with a matcher, or handlers themselves.
    pub fn grouped(&self) -> bool {
        self.client != HookClient::Cursor
    }

    /// The version that the file must have.
    pub fn version(&self) -> Option<u64> {
        (self.client == HookClient::Cursor).then_some(1)
    }

    /// `None` without a home directory. `variable` reads the environment.
    pub fn file(&self, place: &Place, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let (folder, own_variable, name) = match self.client {
            HookClient::ClaudeCode => (".claude", Some("CLAUDE_CONFIG_DIR"), "settings.json"),
            HookClient::Codex => (".codex", Some("CODEX_HOME"), "hooks.json"),
            HookClient::Gemini => (".gemini", None, "settings.json"),
            HookClient::Cursor => (".cursor", None, "hooks.json"),
        };
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let directory = match place {
            Place::Project(directory) => directory.join(folder),
            Place::User => own_variable.and_then(absolute).or_else(|| Some(absolute("HOME")?.join(folder)))?,
        };
        Some(directory.join(name))
    }

    /// A setting that disables all hooks.
    pub fn switched_off(&self, settings: &Value) -> Option<&'static str> {
        let switches: &[(&'static str, bool)] = match self.client {
            HookClient::ClaudeCode => &[("/disableAllHooks", true)],
            HookClient::Gemini => {
                &[("/hooksConfig/enabled", false), ("/hooks/enabled", false), ("/tools/enableHooks", false)]
            }
            HookClient::Codex | HookClient::Cursor => &[],
        };
        let off = |(pointer, off): &&(&str, bool)| settings.pointer(pointer) == Some(&Value::Bool(*off));
        switches.iter().find(off).map(|(pointer, _)| pointer.trim_start_matches('/'))
    }

    /// What the user has to do next.
    pub fn next_step(&self) -> &'static str {
        match self.client {
            HookClient::ClaudeCode => "Restart running sessions; /hooks lists it.",
            HookClient::Codex => "Start Codex and trust the hook with /hooks; until then Codex does not run it.",
            HookClient::Gemini => "Restart running sessions; /hooks lists it.",
            HookClient::Cursor => "Requires Cursor 2.4 or later; the settings of Cursor list it under Hooks.",
        }
    }
}

/// Quotes the text for the shell.
fn word(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@,%=".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub fn project(directory: &Path) -> std::io::Result<Place> {
    Ok(Place::Project(directory.canonicalize()?))
}
