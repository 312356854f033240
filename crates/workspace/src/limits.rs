//! What a workspace may use: time, bytes, the network, the environment, and how much of a sandbox it must have.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much of a sandbox commands must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxRequirement {
    /// Without a sandbox, commands are refused.
    Required,
    /// A sandbox where the system offers one; without one commands run, and say so.
    #[default]
    WherePossible,
    /// No sandbox.
    Off,
}

/// How much a command may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The bytes of memory of each process, as far as it is data of its own.
    pub memory: u64,
    /// How many processes and threads a command may have.
    pub processes: u64,
    /// The bytes of the largest file.
    pub file_size: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { memory: 8 << 30, processes: 4096, file_size: 4 << 30 }
    }
}

/// What the tools of a workspace may use.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long a command runs if it does not say.
    pub bash_timeout: Duration,
    /// The longest that a command may ask for.
    pub bash_longest: Duration,
    /// How long a search or a read may take before it gives what it has.
    pub file_timeout: Duration,
    /// How much output is kept; of more, the beginning and the end.
    pub output_bytes: usize,
    /// How much output ends a command.
    pub flood_bytes: usize,
    /// How much one read gives.
    pub read_bytes: usize,
    /// How much a command may take. Where this system has none of it, nothing is bounded.
    pub bounds: Bounds,
    /// Whether commands may use the network. Without a sandbox it cannot be turned off.
    pub network: bool,
    /// How much of a sandbox commands must have.
    pub sandbox: SandboxRequirement,
    /// The variables that commands inherit; a trailing `*` stands for any ending. Whatever is listed, variables of
    /// Toolgate and those whose name speaks of a secret are not passed.
    pub environment: Vec<String>,
    /// Files and directories that confined commands cannot see: Toolgate's own. None may contain the root or lie in it.
    pub hidden: Vec<PathBuf>,
    /// Whether a path below the root, relative to it, needs a person's answer to be written. A link must not lead to such
    /// a one: whoever was asked was shown another name.
    pub is_protected: fn(&Path) -> bool,
    /// The program that confines itself and becomes the shell; the running one if absent.
    pub confiner: Option<PathBuf>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bash_timeout: Duration::from_secs(120),
            bash_longest: Duration::from_secs(600),
            file_timeout: Duration::from_secs(30),
            output_bytes: 256 * 1024,
            flood_bytes: 64 * 1024 * 1024,
            read_bytes: 1024 * 1024,
            bounds: Bounds::default(),
            network: false,
            sandbox: SandboxRequirement::default(),
            environment: INHERITED.iter().map(|name| (*name).to_owned()).collect(),
            hidden: Vec::new(),
            is_protected: |_| false,
            confiner: None,
        }
    }
}

/// What compilers, package managers and terminals need, and nothing that could carry a secret.
const INHERITED: [&str; 27] = [
    "CARGO_HOME",
    "COLORTERM",
    "EDITOR",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LOGNAME",
    "NO_COLOR",
    "NVM_DIR",
    "PATH",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
];
