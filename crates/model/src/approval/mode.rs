//! Modes: which kinds of calls a session lets pass without asking.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What kind of a call it is, in the words of the approval protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Reads.
    Info,
    /// Changes files of the workspace.
    Edit,
    /// Runs commands.
    Exec,
    /// Anything of somebody else's.
    Mcp,
}

impl Category {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Info, Self::Edit, Self::Exec, Self::Mcp];

    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Edit => "edit",
            Self::Exec => "exec",
            Self::Mcp => "mcp",
        }
    }

    /// Reads [`Category::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.as_str() == text)
    }
}

/// Which calls of a session pass without asking; later ones let more pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// None.
    #[default]
    Default,
    /// Those that read, and those that change files of the workspace.
    AutoEdit,
    /// All.
    Force,
}

/// The word is no mode.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is no mode; write default, auto_edit or force")]
pub struct ModeError(String);

impl Mode {
    /// All of them, the strictest first.
    pub const ALL: [Self; 3] = [Self::Default, Self::AutoEdit, Self::Force];

    /// Other names that hosts use for [`Mode::Force`].
    pub const ALIASES: [&'static str; 3] = ["yolo", "dangerously_skip_permissions", "dangerously-skip-permissions"];

    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AutoEdit => "auto_edit",
            Self::Force => "force",
        }
    }

    /// Reads a mode, by its name or by another spelling that hosts use for it.
    pub fn parse(text: &str) -> Result<Self, ModeError> {
        if Self::ALIASES.contains(&text) {
            return Ok(Self::Force);
        }
        Self::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or_else(|| ModeError(text.to_owned()))
    }

    /// Whether a call of this kind passes without asking.
    pub fn passes(self, category: Category) -> bool {
        match self {
            Self::Default => false,
            Self::AutoEdit => matches!(category, Category::Info | Category::Edit),
            Self::Force => true,
        }
    }
}
