//! The local tools of a coding agent: files and processes below one root directory, and the sandbox for commands.
//!
//! Enforces only the root and the limits. Knows no protocol, no ledger and no approvals.

mod arguments;
mod error;
mod files;
mod launcher;
mod limits;
mod output;
mod root;
mod sandbox;
mod search;
mod shell;
mod stop;
mod tool;
mod workspace;

pub use error::WorkspaceError;
pub use launcher::{Launch, Launcher};
pub use limits::{Bounds, Limits, SandboxRequirement};
pub use output::Output;
pub use sandbox::{CONFINE_WORD, ConfineError, SandboxReport, confine_and_exec};
pub use tool::WorkspaceTool;
pub use workspace::Workspace;
