//! Limits of a workspace: time, bytes, network, environment, and whether it must have a sandbox.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Whether commands need a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxRequirement {
    /// Without a sandbox, commands are refused.
    Required,
    /// Commands run without a sandbox if the system offers none, and the report says so.
    #[default]
    WherePossible,
    Off,
}

/// Resource limits of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The data size of each process, in bytes (`RLIMIT_DATA`).
    pub memory: u64,
    /// The number of processes and threads of a command.
    pub processes: u64,
    /// The size of the largest file, in bytes.
    pub file_size: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { memory: 8 << 30, processes: 4096, file_size: 4 << 30 }
    }
}

#[derive(Debug, Clone)]
pub struct Limits {
    /// The default timeout of a command.
    pub bash_timeout: Duration,
    /// The longest timeout that a command may request.
    pub bash_longest: Duration,
    /// How long a search or a read may take before it returns what it has.
    pub file_timeout: Duration,
    /// How much output is kept: of a longer one, the beginning and the end.
    pub output_bytes: usize,
    /// The amount of output at which a command is killed.
    pub flood_bytes: usize,
    /// How much one read returns.
    pub read_bytes: usize,
    /// Resource limits of commands. Not enforced on systems without them.
    pub bounds: Bounds,
    /// Whether commands may use the network. It cannot be disabled without a sandbox.
    pub network: bool,
    pub sandbox: SandboxRequirement,
    /// The variables that commands inherit; a trailing `*` matches any suffix. Variables of Toolgate and those whose
    /// name indicates a secret are never passed, even if listed.
    pub environment: Vec<String>,
    /// Toolgate's own files and directories, which confined commands cannot see. None may contain the root or lie in
    /// it.
    pub hidden: Vec<PathBuf>,
    /// Whether writing a path, relative to the root, needs approval. A link must not lead to such a path: the approver
    /// was shown another name.
    pub is_protected: fn(&Path) -> bool,
    /// The program that confines itself and executes the shell; by default the running program.
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

/// What compilers, package managers and terminals need, and nothing that could contain a secret.
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
