//! The tool approval protocol: JSON lines between an application that embeds an agent (the host) and the gate.
//!
//! Here are its words only: a line in, a command or an error out; an event in, a line out. Who reads and writes the lines,
//! and what is done about them, is decided elsewhere.

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

/// The longest line that is read, without its end.
pub const MAX_LINE: usize = 8 * 1024 * 1024;
/// How much of what a host sent is told back to it in an error, in bytes.
pub const MAX_ECHO: usize = 120;
/// How many commands wait at most. A host that sends more has to wait itself; none is dropped.
pub const COMMAND_QUEUE: usize = 64;
