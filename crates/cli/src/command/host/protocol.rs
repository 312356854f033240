//! The tool approval protocol: JSON lines between an application that embeds an agent (the host) and the gate.
//!
//! This module only encodes and decodes: a line to a command or an error; an event to a line. The input, the output and
//! the processing are elsewhere.

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

/// The maximum length of a line, without its end.
pub const MAX_LINE: usize = 8 * 1024 * 1024;
/// How much of a host's input is repeated in an error, in bytes.
pub const MAX_ECHO: usize = 120;
/// The maximum number of queued commands. A host that sends more has to wait; none is dropped.
pub const COMMAND_QUEUE: usize = 64;
