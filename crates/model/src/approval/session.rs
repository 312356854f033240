//! Sessions: the conversation that calls belong to, named by its caller, and its working directory.

use serde::{Deserialize, Serialize};

use crate::principal::PrincipalId;
use crate::text::{TextError, check_line, identifiers};

identifiers! {
    /// The caller's name of a conversation.
    SessionName;
    /// The caller's name of one of its calls.
    CallLabel;
}

/// A working directory, as its canonical path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Workspace(String);

impl Workspace {
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check_line(text, 4096)?;
        Ok(Self(text.to_owned()))
    }

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

/// The session of a call. The same name of two callers means two sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalSession {
    pub owner: PrincipalId,
    pub name: SessionName,
    /// The working directory.
    pub workspace: Option<Workspace>,
}
