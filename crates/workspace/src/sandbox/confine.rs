//! Confinement of a child process: started with [`CONFINE_WORD`], this program drops its privileges and executes the
//! shell.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::limits::Bounds;

/// The first command line argument of a process that confines itself.
pub const CONFINE_WORD: &str = "workspace-exec";

const WRITE: &str = "--write";
const HIDE: &str = "--hide";
const NETWORK: &str = "--network";
const LEVEL: &str = "--level";
const BOUNDS: &str = "--bounds";
const END: &str = "--";

/// Why the process could not be confined; the shell was not started.
#[derive(Debug, Error)]
pub enum ConfineError {
    #[error("`{CONFINE_WORD}` is internal: Toolgate starts sandboxed commands with it; do not run it yourself")]
    Usage,
    #[error("this kernel has no Landlock that restricts writes; it requires Linux 6.2 or later")]
    Unsupported,
    #[error("could not set up Landlock: {0}")]
    Landlock(String),
    #[error("could not install the seccomp filter: {0}")]
    Filter(String),
    #[error("could not drop root capabilities: {0}")]
    Capability(io::ErrorKind),
    #[error("could not hide Toolgate's own files: {0}")]
    Hide(io::ErrorKind),
    #[error("could not set resource limits: {0}")]
    Bounds(io::ErrorKind),
    #[error("could not create a session for the command: {0}")]
    Session(io::ErrorKind),
    #[error("could not start the shell: {0}")]
    Exec(io::ErrorKind),
}

/// How much of the confinement applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The complete sandbox.
    Full,
    /// The parts that bubblewrap, which runs around this process, does not provide.
    Inside,
    /// No sandbox: the command only stays in its process group and within its resource limits.
    Tied,
}

impl Level {
    const ALL: [Self; 3] = [Self::Full, Self::Inside, Self::Tied];

    const fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Inside => "inside",
            Self::Tied => "tied",
        }
    }
}

/// What a confined command may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    pub level: Level,
    pub bounds: Bounds,
    /// Directories below which the command may write.
    pub writable: Vec<PathBuf>,
    /// Files and directories that the command cannot see.
    pub hidden: Vec<PathBuf>,
    /// Whether the command may use the network.
    pub network: bool,
}

impl Confinement {
    /// Encodes the confinement as command line arguments, up to the program to run.
    pub fn to_arguments(&self) -> Vec<OsString> {
        let writable = self.writable.iter().flat_map(|path| [WRITE.into(), path.into()]);
        let hidden = self.hidden.iter().flat_map(|path| [HIDE.into(), path.into()]);
        let network = self.network.then(|| NETWORK.into());
        let Bounds { memory, processes, file_size } = self.bounds;
        let bounds = [BOUNDS.into(), format!("{memory},{processes},{file_size}").into()];
        let level = [LEVEL.into(), self.level.word().into()];
        level.into_iter().chain(bounds).chain(writable).chain(hidden).chain(network).chain([END.into()]).collect()
    }

    /// Decodes these arguments and leaves the program and its arguments in the iterator.
    fn from_arguments(words: &mut impl Iterator<Item = OsString>) -> Result<Self, ConfineError> {
        let mut confinement = Self {
            level: Level::Full,
            bounds: Bounds::default(),
            writable: Vec::new(),
            hidden: Vec::new(),
            network: false,
        };
        loop {
            let word = words.next().ok_or(ConfineError::Usage)?;
            match word.to_str() {
                Some(WRITE) => confinement.writable.push(words.next().ok_or(ConfineError::Usage)?.into()),
                Some(HIDE) => confinement.hidden.push(words.next().ok_or(ConfineError::Usage)?.into()),
                Some(NETWORK) => confinement.network = true,
                Some(LEVEL) => confinement.level = level(words.next()).ok_or(ConfineError::Usage)?,
                Some(BOUNDS) => confinement.bounds = bounds(words.next()).ok_or(ConfineError::Usage)?,
                Some(END) => return Ok(confinement),
                _ => return Err(ConfineError::Usage),
            }
        }
    }
}

fn level(word: Option<OsString>) -> Option<Level> {
    let word = word?;
    Level::ALL.into_iter().find(|level| word == level.word())
}

fn bounds(word: Option<OsString>) -> Option<Bounds> {
    let word = word?;
    let mut numbers = word.to_str()?.split(',').map(|number| number.parse().ok());
    let bounds = Bounds { memory: numbers.next()??, processes: numbers.next()??, file_size: numbers.next()?? };
    numbers.next().is_none().then_some(bounds)
}

/// Confines this process and executes the program named after `--`. Call it with the arguments after [`CONFINE_WORD`],
/// before any thread is started or file opened. It returns only on failure, and then nothing has run.
pub fn confine_and_exec(mut words: impl Iterator<Item = OsString>) -> Result<Infallible, ConfineError> {
    let confinement = Confinement::from_arguments(&mut words)?;
    let program = words.next().ok_or(ConfineError::Usage)?;
    become_confined(&confinement, program, words)
}

#[cfg(target_os = "linux")]
fn become_confined(
    confinement: &Confinement,
    program: OsString,
    arguments: impl Iterator<Item = OsString>,
) -> Result<Infallible, ConfineError> {
    use std::os::unix::process::CommandExt;

    use super::hide::{Hidden, hide};
    use super::{bounds, capability, filter, landlock};

    let mut hidden = Hidden::No;
    match confinement.level {
        Level::Full => {
            // Detach from the terminal: a command must neither write to it nor inject input.
            rustix::process::setsid().map_err(|error| ConfineError::Session(error.kind()))?;
            hidden = hide(confinement).map_err(|error| ConfineError::Hide(error.kind()))?;
            landlock::restrict(confinement)?;
            filter::close_sockets(confinement.network)?;
            filter::separate()?;
            filter::tie()?;
            capability::restrict()?;
        }
        Level::Inside => {
            filter::separate()?;
            capability::restrict()?;
        }
        Level::Tied => {
            rustix::process::setsid().map_err(|error| ConfineError::Session(error.kind()))?;
            filter::tie()?;
        }
    }
    bounds::restrict(confinement.bounds, hidden).map_err(|error| ConfineError::Bounds(error.kind()))?;
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(ConfineError::Exec(error.kind()))
}

#[cfg(not(target_os = "linux"))]
fn become_confined(
    _confinement: &Confinement,
    _program: OsString,
    _arguments: impl Iterator<Item = OsString>,
) -> Result<Infallible, ConfineError> {
    Err(ConfineError::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confinement_passes_through_a_command_line_unchanged() {
        let confinement = Confinement {
            level: Level::Inside,
            bounds: Bounds { memory: 1, processes: 2, file_size: 3 },
            writable: vec!["/srv/project".into(), "--hide".into()],
            hidden: vec!["/srv/data".into()],
            network: true,
        };
        let mut words = confinement.to_arguments().into_iter().chain(["sh".into(), "--network".into()]);
        assert_eq!(Confinement::from_arguments(&mut words).unwrap(), confinement);
        assert_eq!(words.collect::<Vec<_>>(), ["sh", "--network"]);
    }

    #[test]
    fn an_unknown_word_confines_nothing_and_runs_nothing() {
        let words = |text: &'static str| text.split(' ').map(OsString::from);
        for text in [
            "--level none -- true",
            "--bounds 1,2 -- true",
            "--writ /srv -- true",
            "--write",
            "--write /srv",
            "true",
            "--network",
        ] {
            let refused = confine_and_exec(words(text));
            assert!(matches!(refused, Err(ConfineError::Usage)), "{text}");
        }
        assert!(matches!(confine_and_exec(words("--")), Err(ConfineError::Usage)));
    }
}
