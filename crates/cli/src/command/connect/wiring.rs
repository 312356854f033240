//! How each client's settings name the hook: in which file, under which events, in which shape, and how Toolgate's own
//! entries are told from those of others.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::hook::HookClient;

/// How long the client waits for the hook: longer than the hook waits for the gate, for a client that gives up lets the
/// call pass.
const TIMEOUT_SECONDS: u64 = 3_660;

/// How one client is connected.
pub struct Wiring {
    /// The client.
    pub client: HookClient,
    /// The program, as a word of the shell.
    program: String,
    /// What follows the client's name.
    options: String,
}

/// Whose settings.
pub enum Place {
    /// Those of one project, in this directory.
    Project(PathBuf),
    /// Those of the user, for all projects.
    User,
}

/// Which gate the hook asks, with which login, and for whom.
#[derive(Default)]
pub struct Target {
    /// The gate.
    pub url: Option<String>,
    /// The login.
    pub profile: Option<String>,
    /// The agent, where the key is not its own.
    pub agent: Option<String>,
}

impl Wiring {
    /// The hook of this client, run by this program.
    pub fn new(client: HookClient, program: &str, target: &Target) -> Self {
        let option =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| format!(" {name} {}", word(value)));
        let options = [("--url", &target.url), ("--profile", &target.profile), ("--agent", &target.agent)];
        let options = options.into_iter().filter_map(|(name, value)| option(name, value)).collect();
        Self { client, program: word(program), options }
    }

    /// The command that the client runs. The shell turns every way to fail, also that the program is gone, into the one
    /// status that blocks.
    pub fn command(&self) -> String {
        format!("{} hook {}{} || exit 2", self.program, self.client.name(), self.options)
    }

    /// Whether a command in the settings is Toolgate's for this client, of this program or of an older one.
    pub fn is_own(&self, command: &str) -> bool {
        let Some((program, rest)) = command.split_once(" hook ") else { return false };
        let file = program.trim_matches(['\'', '"']).rsplit('/').next();
        (program == self.program || file == Some("toolgate"))
            && rest.split_whitespace().next() == Some(self.client.name())
    }

    /// The events to stand under, and what stands there.
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

    /// The version of its format that the file has to tell.
    pub fn version(&self) -> Option<u64> {
        (self.client == HookClient::Cursor).then_some(1)
    }

    /// The file with the settings; `None` where the user has no home. `variable` reads the environment.
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

    /// A switch in these settings that keeps the client from running any hook.
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

    /// What is left to do for the person.
    pub fn next_step(&self) -> &'static str {
        match self.client {
            HookClient::ClaudeCode => {
                "Sessions that run already take it up when they are started again; /hooks shows it."
            }
            HookClient::Codex => "Start Codex and trust the hook with /hooks: until then Codex does not run it.",
            HookClient::Gemini => "Sessions that run already take it up when they are started again; /hooks shows it.",
            HookClient::Cursor => "It needs Cursor 2.4 or later; the settings of Cursor list it under Hooks.",
        }
    }
}

/// The text as one word of a shell.
fn word(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@,%=".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The directory of a project, by its full path.
pub fn project(directory: &Path) -> std::io::Result<Place> {
    Ok(Place::Project(directory.canonicalize()?))
}
