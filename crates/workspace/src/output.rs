//! What a tool gives back.

use serde_json::Value;

/// What a tool gives back.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// What the agent reads.
    pub text: String,
    /// Whether the tool ran and failed, as a command with an exit status other than 0.
    pub is_error: bool,
    /// Whether there was more than the text holds.
    pub truncated: bool,
    /// The same as figures: an object whose members depend on the tool.
    pub details: Value,
}
