//! Starting programs of the operator in the sandbox of commands: servers that run beside the gate.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::WorkspaceError;
use crate::limits::Limits;
use crate::sandbox::{Sandbox, SandboxReport};

/// Starts programs. Its directory for temporary files is removed with it.
#[derive(Debug)]
pub struct Launcher(Sandbox);

/// How a program is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The words of the command: what confines the program, and then the program itself.
    pub words: Vec<OsString>,
    /// Whether it makes itself the leader of a process group; else its parent must.
    pub leads_group: bool,
}

impl Launcher {
    /// Programs write below these directories and in one for temporary files; the rest is as the limits say.
    pub fn new(writable: Vec<PathBuf>, limits: &Limits) -> Result<Self, WorkspaceError> {
        Sandbox::for_programs(writable, limits).map(Self)
    }

    /// What is enforced.
    pub fn report(&self) -> &SandboxReport {
        self.0.report()
    }

    /// The directory for temporary files.
    pub fn temporary(&self) -> &Path {
        self.0.temporary()
    }

    /// How these words are started, in this directory.
    pub fn launch(&self, words: &[OsString], directory: Option<&Path>) -> Result<Launch, WorkspaceError> {
        let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        self.0.launch(&words, directory)
    }
}
