//! Why a tool gave no output. The words come from here: no error repeats a path, a pattern or a content that was sent.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// Why a workspace could not be opened, or a tool gave no output.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkspaceError {
    /// The root is not a directory that can be opened.
    #[error("the workspace root cannot be opened ({kind}); name a directory that exists and can be read")]
    Root {
        /// What the system said.
        kind: io::ErrorKind,
    },
    /// The root is the whole file system.
    #[error("the workspace root is the whole file system; name the directory of one project")]
    RootIsEverything,
    /// The root and a hidden directory lie in each other.
    #[error("the workspace root and `{hidden}`, which agents must not see, lie in each other; name another root")]
    RootMeetsHidden {
        /// The hidden directory.
        hidden: PathBuf,
    },
    /// A sandbox is required and there is none.
    #[error(
        "commands need a sandbox and this system offers none ({why}); install bubblewrap or allow them without one"
    )]
    NoSandbox {
        /// What was tried.
        why: String,
    },
    /// Only a person answers a question.
    #[error("a question is answered by a person; it is not run")]
    OnlyAPersonAnswers,
    /// A required argument is absent.
    #[error("the argument `{name}` is missing")]
    MissingArgument {
        /// The argument.
        name: &'static str,
    },
    /// An argument that the tool does not take.
    #[error("the argument `{name}` is not one of this tool's; leave it out")]
    UnknownArgument {
        /// The argument.
        name: String,
    },
    /// An argument of the wrong kind.
    #[error("the argument `{name}` must be {expected}")]
    BadArgument {
        /// The argument.
        name: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A pattern that cannot be read.
    #[error("the pattern cannot be read: {reason}")]
    BadPattern {
        /// What is wrong with it.
        reason: String,
    },
    /// A path that leaves the root.
    #[error("the path leads outside the workspace, by itself or by a link; name one below the root, without `..`")]
    OutsideRoot,
    /// A path that leads by a link to a file that is protected by its name.
    #[error(
        "the path leads by a link to a protected place; name that place itself, so that a person can be asked about it"
    )]
    LeadsToProtected,
    /// Nothing there.
    #[error("there is nothing at that path; find the file with Glob first")]
    NotFound,
    /// A directory where a file is needed.
    #[error("the path is a directory; name a file")]
    IsDirectory,
    /// A file where a directory is needed.
    #[error("the path is not a directory; name a directory")]
    NotADirectory,
    /// A pipe, a socket or a device.
    #[error("the path is neither a file nor a directory; pipes, sockets and devices are not opened")]
    Special,
    /// A file without leave to write.
    #[error("the file is read-only; change its mode first if it should be written")]
    ReadOnly,
    /// A file that is not text.
    #[error("the file is binary; only text is read")]
    Binary,
    /// A text that an edit would damage.
    #[error("the file is not UTF-8, so that an edit would damage it; change it with a command instead")]
    NotUtf8,
    /// Too much to handle in one step.
    #[error("more than {limit} bytes are too much for one step; work on a smaller part")]
    TooLarge {
        /// The most.
        limit: usize,
    },
    /// The text to replace does not occur.
    #[error("`old_string` does not occur in the file; read the file again and copy the text exactly")]
    EditNotFound,
    /// The text to replace occurs more than once.
    #[error("`old_string` occurs {count} times; give more of the text around it, or set `replace_all`")]
    EditAmbiguous {
        /// How often.
        count: usize,
    },
    /// A time limit above the longest.
    #[error("`timeout_ms` may be {} at most; run longer work in parts", .longest.as_millis())]
    TimeoutTooLong {
        /// The longest.
        longest: Duration,
    },
    /// The system refused.
    #[error("{doing} failed: {kind}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        kind: io::ErrorKind,
    },
}

impl WorkspaceError {
    /// What a failed step below the root means.
    pub(crate) fn from_io(doing: &'static str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::IsADirectory => Self::IsDirectory,
            io::ErrorKind::NotADirectory => Self::NotADirectory,
            // The confined directory reports an attempt to leave it without a number of the system.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Self::OutsideRoot,
            _ if error.raw_os_error() == Some(libc::ELOOP) => Self::OutsideRoot,
            kind => Self::System { doing, kind },
        }
    }
}
