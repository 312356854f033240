//! The output of a tool.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The text that the agent reads.
    pub text: String,
    /// True if the tool ran and failed, for example a command with an exit status other than 0.
    pub is_error: bool,
    /// True if the output was longer than `text`.
    pub truncated: bool,
    /// The same result as structured data: an object whose members depend on the tool.
    pub details: Value,
}
