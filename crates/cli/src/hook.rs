//! What coding agents say before they use a tool, and what they want to hear. Each client has words of its own, in a file
//! of its own; here is what they share. Nothing in this module asks anybody: bytes in, a call or a reply out.

use clap::ValueEnum;
use serde_json::{Map, Value};
use thiserror::Error;
use toolgate_model::strict_json::{self, StrictJsonError};

use self::fields::Fields;
use crate::output::clean;

mod claude_code;
mod codex;
mod cursor;
mod fields;
mod gemini;
#[cfg(test)]
mod tests;

/// The exit status that blocks a call in every one of the clients. Most other failures let it pass.
pub const BLOCKED: u8 = 2;

/// The longest reason that is handed on.
const MAX_REASON: usize = 4_000;

/// Where clients keep the settings that name this hook, and where Toolgate keeps its own.
const SETTINGS: [&str; 5] = [".claude/", ".codex/", ".gemini/", ".cursor/", ".config/toolgate/"];

/// A coding agent that asks before it uses a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HookClient {
    /// Claude Code.
    ClaudeCode,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor.
    Cursor,
}

/// What a client says.
#[derive(Debug, PartialEq)]
pub enum HookInput {
    /// A tool is about to be used.
    Call {
        /// The client's name for the moment, which decides how it wants to be answered.
        event: String,
        /// The call.
        call: HookCall,
    },
    /// Something that no call depends on.
    Nothing(Reply),
}

/// A tool that is about to be used.
#[derive(Debug, PartialEq)]
pub struct HookCall {
    /// The client's session.
    pub session: String,
    /// The directory it works in, if it is known by its full path.
    pub workspace: Option<String>,
    /// The client's name of the tool.
    pub tool: String,
    /// The client's id of the call.
    pub id: Option<String>,
    /// What kind of tool it is.
    pub category: Category,
    /// What it is called with.
    pub arguments: Map<String, Value>,
}

/// What a tool does, as the modes of approvals tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Only looks.
    Info,
    /// Changes files.
    Edit,
    /// Runs programs, or nobody knows: the strictest.
    Exec,
    /// Belongs to a server of the Model Context Protocol.
    Mcp,
}

/// Whether the call may go on.
#[derive(Debug, PartialEq, Eq)]
pub struct HookResponse {
    /// Whether it may.
    pub allow: bool,
    /// Why, or why not.
    pub reason: String,
}

/// What the process says and how it ends.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    /// For the client.
    pub stdout: String,
    /// The reason of a no, which some clients read here.
    pub stderr: String,
    /// The exit status.
    pub code: u8,
}

/// Why the input of a hook is not understood.
#[derive(Debug, Error)]
pub enum InputError {
    /// An event that may or may not decide about a call.
    #[error(
        "{client} sent the event `{event}`, which Toolgate does not know; take the hook off that event, or update Toolgate"
    )]
    Event {
        /// Whose.
        client: &'static str,
        /// Which.
        event: String,
    },
    /// Not the text of a hook.
    #[error("the input of the hook cannot be read: {0}")]
    Json(#[from] StrictJsonError),
    /// A member that every call has.
    #[error("the input of the hook has no `{0}`; check that the command in the client's settings names this client")]
    Missing(&'static str),
}

impl HookClient {
    /// Its name, on the command line and before the names of its tools.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
        }
    }

    /// Understands what the client wrote to the hook.
    pub fn read(self, input: &[u8]) -> Result<HookInput, InputError> {
        let fields = Fields::new(self.name(), strict_json::parse(input)?)?;
        let mut input = match self {
            Self::ClaudeCode => claude_code::read(fields),
            Self::Codex => codex::read(fields),
            Self::Gemini => gemini::read(fields),
            Self::Cursor => cursor::read(fields),
        }?;
        if let HookInput::Call { call, .. } = &mut input
            && call.category == Category::Edit
            && call.touches_settings()
        {
            // INVARIANT: no mode that lets edits pass lets one pass that could take the hook away.
            call.category = Category::Exec;
        }
        Ok(input)
    }

    /// The answer to a call in the client's words.
    pub fn reply(self, event: &str, answer: &HookResponse) -> Reply {
        // A no without a reason is an error of the hook to Codex, which then goes on.
        let reason = match answer.reason.trim() {
            "" if answer.allow => "allowed by Toolgate".to_owned(),
            "" => "denied by Toolgate".to_owned(),
            reason => clean(reason).chars().take(MAX_REASON).collect(),
        };
        let stdout = match self {
            Self::ClaudeCode => claude_code::answer(event, answer.allow, &reason),
            Self::Codex => codex::answer(event, answer.allow, &reason),
            Self::Gemini => gemini::answer(answer.allow, &reason),
            Self::Cursor => cursor::answer(answer.allow, &reason),
        };
        let (stderr, code) = if answer.allow { (String::new(), 0) } else { (reason, BLOCKED) };
        Reply { stdout: stdout.to_string(), stderr, code }
    }

    /// The no to an input that was not understood.
    pub fn reply_to_unreadable(self, reason: String) -> Reply {
        let event = match self {
            Self::ClaudeCode => claude_code::PRE_TOOL,
            Self::Codex => codex::PRE_TOOL,
            Self::Gemini => gemini::PRE_TOOL,
            Self::Cursor => cursor::PRE_TOOL,
        };
        self.reply(event, &HookResponse::deny(reason))
    }
}

impl HookResponse {
    /// A no.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { allow: false, reason: reason.into() }
    }
}

impl Category {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Edit => "edit",
            Self::Exec => "exec",
            Self::Mcp => "mcp",
        }
    }
}

impl HookCall {
    fn touches_settings(&self) -> bool {
        let names_settings = |text: &str| {
            let text = format!("{}/", text.to_lowercase());
            SETTINGS.iter().any(|settings| text.contains(settings))
        };
        let mut open: Vec<&Value> = self.arguments.values().collect();
        while let Some(value) = open.pop() {
            match value {
                Value::String(text) if names_settings(text) => return true,
                Value::Array(items) => open.extend(items),
                Value::Object(members) => open.extend(members.values()),
                _ => {}
            }
        }
        self.workspace.as_deref().is_some_and(names_settings)
    }
}

impl Reply {
    /// No decision, for events that decide about no call.
    fn nothing() -> Self {
        Self { stdout: "{}".to_owned(), stderr: String::new(), code: 0 }
    }
}
