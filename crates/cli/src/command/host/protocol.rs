//! The tool approval protocol: JSON lines between an application that embeds an agent (the host) and the gate.
//!
//! Parses commands and serializes events; does no IO.

pub use self::incoming::{ApprovalResume, Incoming, LineError, ToolApprove, ToolCall, ToolDeny};
pub use self::outgoing::{
    Auto, AutoSource, Capabilities, ErrorCode, ErrorEvent, Outgoing, Persistence, ResultStatus, ShownTool, ToolResult,
};
pub use self::scope::Scope;
pub use self::token::ResumeToken;

mod echo;
mod fields;
mod incoming;
mod outgoing;
mod scope;
#[cfg(test)]
mod tests;
mod token;

/// Without the line end.
pub const MAX_LINE: usize = 8 * 1024 * 1024;
/// The limit for quoted input in errors, in bytes.
pub const MAX_ECHO: usize = 120;
/// The maximum number of queued commands. With more, the host is blocked; none is dropped.
pub const COMMAND_QUEUE: usize = 64;
