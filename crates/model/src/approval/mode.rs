//! Modes: which categories of calls a session allows without approval.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The category of a call, in the terms of the approval protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Reads.
    Info,
    /// Changes files of the workspace.
    Edit,
    /// Runs commands.
    Exec,
    /// Calls an external tool.
    Mcp,
}

impl Category {
    pub const ALL: [Self; 4] = [Self::Info, Self::Edit, Self::Exec, Self::Mcp];

    /// The stored and displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Edit => "edit",
            Self::Exec => "exec",
            Self::Mcp => "mcp",
        }
    }

    /// Parses [`Category::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.as_str() == text)
    }
}

/// Which calls of a session need no approval; later variants allow more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// None.
    #[default]
    Default,
    /// Reads and changes of workspace files.
    AutoEdit,
    /// All.
    Force,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("must be default, auto_edit or force, not `{0}`")]
pub struct ModeError(String);

impl Mode {
    /// All modes, the strictest first.
    pub const ALL: [Self; 3] = [Self::Default, Self::AutoEdit, Self::Force];

    /// Other names that hosts use for [`Mode::Force`].
    pub const ALIASES: [&'static str; 3] = ["yolo", "dangerously_skip_permissions", "dangerously-skip-permissions"];

    /// The stored and displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AutoEdit => "auto_edit",
            Self::Force => "force",
        }
    }

    /// Parses a mode by its name or an alias.
    pub fn parse(text: &str) -> Result<Self, ModeError> {
        if Self::ALIASES.contains(&text) {
            return Ok(Self::Force);
        }
        Self::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or_else(|| ModeError(text.to_owned()))
    }

    /// Whether a call of this category needs no approval.
    pub fn passes(self, category: Category) -> bool {
        match self {
            Self::Default => false,
            Self::AutoEdit => matches!(category, Category::Info | Category::Edit),
            Self::Force => true,
        }
    }
}
