//! The hook formats of coding agents: parses hook inputs and formats decisions. Each client has its own module. Nothing here
//! does IO.

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

/// The exit status that blocks a call in all clients. With most others the call continues.
pub const BLOCKED: u8 = 2;

const MAX_REASON: usize = 4_000;

/// The directories with the settings of clients, which contain the hook, and of Toolgate.
const SETTINGS: [&str; 5] = [".claude/", ".codex/", ".gemini/", ".cursor/", ".config/toolgate/"];

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

#[derive(Debug, PartialEq)]
pub enum HookInput {
    Call {
        /// The name of the event, which determines the format of the decision.
        event: String,
        call: HookCall,
    },
    /// An event that decides nothing.
    Nothing(Reply),
}

#[derive(Debug, PartialEq)]
pub struct HookCall {
    pub session: String,
    /// The working directory, if its full path is known.
    pub workspace: Option<String>,
    pub tool: String,
    pub id: Option<String>,
    pub category: Category,
    pub arguments: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    Info,
    Edit,
    /// Runs programs, or is unknown: the strictest category.
    Exec,
    Mcp,
}

#[derive(Debug, PartialEq, Eq)]
pub struct HookResponse {
    pub allow: bool,
    pub reason: String,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub stdout: String,
    /// The reason of a denial, which some clients read here.
    pub stderr: String,
    pub code: u8,
}

#[derive(Debug, Error)]
pub enum InputError {
    /// An unknown event, which might decide a call.
    #[error("{client} sent the unknown event `{event}`; remove the hook from that event, or update Toolgate")]
    Event { client: &'static str, event: String },
    #[error("could not parse the hook input: {0}")]
    Json(#[from] StrictJsonError),
    #[error("the hook input has no `{0}`; check that the hook command in the settings names this client")]
    Missing(&'static str),
}

impl HookClient {
    /// Its name on the command line, and the prefix of its tools.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
        }
    }

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
            // INVARIANT: a mode that allows edits does not allow edits that could remove the hook.
            call.category = Category::Exec;
        }
        Ok(input)
    }

    pub fn reply(self, event: &str, response: &HookResponse) -> Reply {
        // To Codex, a denial without a reason is a failed hook, and it continues.
        let reason = match response.reason.trim() {
            "" if response.allow => "allowed by Toolgate".to_owned(),
            "" => "denied by Toolgate".to_owned(),
            reason => clean(reason).chars().take(MAX_REASON).collect(),
        };
        let stdout = match self {
            Self::ClaudeCode => claude_code::decision(event, response.allow, &reason),
            Self::Codex => codex::decision(event, response.allow, &reason),
            Self::Gemini => gemini::decision(response.allow, &reason),
            Self::Cursor => cursor::decision(response.allow, &reason),
        };
        let (stderr, code) = if response.allow { (String::new(), 0) } else { (reason, BLOCKED) };
        Reply { stdout: stdout.to_string(), stderr, code }
    }

    /// The denial for an invalid input.
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
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { allow: false, reason: reason.into() }
    }
}

impl Category {
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
    /// No decision, for events that decide nothing.
    fn nothing() -> Self {
        Self { stdout: "{}".to_owned(), stderr: String::new(), code: 0 }
    }
}
