//! Sessions: the conversation that calls belong to, as whoever holds it names it, and the directory that it works in.

use serde::{Deserialize, Serialize};

use crate::principal::PrincipalId;
use crate::text::{TextError, check_line, identifiers};

identifiers! {
    /// What a caller calls a conversation.
    SessionName;
    /// What a caller calls one of its calls.
    CallLabel;
}

/// A directory that calls work in, as its canonical path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Workspace(String);

impl Workspace {
    /// Checks and wraps the path.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check_line(text, 4096)?;
        Ok(Self(text.to_owned()))
    }

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Workspace {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        Self::parse(&text)
    }
}

impl From<Workspace> for String {
    fn from(workspace: Workspace) -> Self {
        workspace.0
    }
}

/// The session of a call. Two callers may use the same name: it means another session for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalSession {
    /// Whose.
    pub owner: PrincipalId,
    /// Its name.
    pub name: SessionName,
    /// The directory that it works in.
    pub workspace: Option<Workspace>,
}
