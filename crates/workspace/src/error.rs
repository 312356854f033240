//! Errors of the workspace. No message repeats a path, a pattern or content from the call.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// Why a workspace could not be opened, or a tool failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkspaceError {
    #[error("could not open the workspace root: {kind}; set it to a readable directory")]
    Root { kind: io::ErrorKind },
    #[error("the workspace root is `/`; set it to the directory of one project")]
    RootIsEverything,
    #[error("the workspace root overlaps with `{hidden}`, which is hidden from agents; choose another root")]
    RootMeetsHidden { hidden: PathBuf },
    #[error("no sandbox is available for commands ({why}); install bubblewrap or allow commands without a sandbox")]
    NoSandbox {
        /// What was tried.
        why: String,
    },
    #[error("a question tool cannot be executed; only a person can answer it")]
    OnlyAPersonAnswers,
    #[error("argument `{name}` is missing")]
    MissingArgument { name: &'static str },
    #[error("unknown argument `{name}`; remove it")]
    UnknownArgument { name: String },
    #[error("argument `{name}` must be {expected}")]
    BadArgument { name: &'static str, expected: &'static str },
    #[error("invalid pattern: {reason}")]
    BadPattern { reason: String },
    #[error(
        "the path leads outside the workspace, directly or through a link; use a path below the root, without `..`"
    )]
    OutsideRoot,
    /// A path that leads through a link to a file that is protected by its name.
    #[error(
        "the path leads through a link to a protected file; use the path of that file, so that an approver sees it"
    )]
    LeadsToProtected,
    #[error("no such file or directory; use Glob to find it")]
    NotFound,
    #[error("the path is a directory; use the path of a file")]
    IsDirectory,
    #[error("the path is not a directory; use the path of a directory")]
    NotADirectory,
    #[error("the path is neither a file nor a directory; pipes, sockets and devices are not opened")]
    Special,
    #[error("the file is read-only; change its mode before writing it")]
    ReadOnly,
    #[error("the file is binary; only text files are supported")]
    Binary,
    #[error("the file is not valid UTF-8 and an edit would damage it; change it with a command instead")]
    NotUtf8,
    #[error("the content exceeds the limit of {limit} bytes; work on a smaller part")]
    TooLarge { limit: usize },
    #[error("`old_string` does not occur in the file; read the file again and copy the text exactly")]
    EditNotFound,
    #[error("`old_string` occurs {count} times; include more of the surrounding text, or set `replace_all`")]
    EditAmbiguous { count: usize },
    #[error("`timeout_ms` exceeds the limit of {}; split longer work", .longest.as_millis())]
    TimeoutTooLong { longest: Duration },
    /// A system call failed.
    #[error("{doing} failed: {kind}")]
    System { doing: &'static str, kind: io::ErrorKind },
}

impl WorkspaceError {
    /// Maps an error of an operation below the root.
    pub(crate) fn from_io(doing: &'static str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::IsADirectory => Self::IsDirectory,
            io::ErrorKind::NotADirectory => Self::NotADirectory,
            // The confined directory reports an attempt to leave it without an OS error number.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Self::OutsideRoot,
            _ if error.raw_os_error() == Some(libc::ELOOP) => Self::OutsideRoot,
            kind => Self::System { doing, kind },
        }
    }
}
