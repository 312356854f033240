//! The local tools of a coding agent: files and processes below one root directory.
//!
//! This room owns the seven workspace tools and the sandbox in which commands run. It refuses to decide: it knows no
//! protocol, no ledger and no approval, and does what it is called for within the root and the limits.

mod arguments;
mod error;
mod files;
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
pub use limits::{Bounds, Limits, SandboxRequirement};
pub use output::Output;
pub use sandbox::{CONFINE_WORD, ConfineError, SandboxReport, confine_and_exec};
pub use tool::WorkspaceTool;
pub use workspace::Workspace;
