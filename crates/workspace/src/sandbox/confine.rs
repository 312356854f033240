//! The program's other life: started with [`CONFINE_WORD`], it gives up what a command must not do and becomes the
//! shell.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::limits::Bounds;

/// The first word on the command line of a program that is to confine itself.
pub const CONFINE_WORD: &str = "workspace-exec";

const WRITE: &str = "--write";
const HIDE: &str = "--hide";
const NETWORK: &str = "--network";
const LEVEL: &str = "--level";
const BOUNDS: &str = "--bounds";
const END: &str = "--";

/// Why a program did not confine itself, and so did not become the shell.
#[derive(Debug, Error)]
pub enum ConfineError {
    /// Not called as Toolgate calls it.
    #[error("`{CONFINE_WORD}` is how Toolgate starts commands; it is not for people")]
    Usage,
    /// No Landlock here.
    #[error("this system offers no Landlock that confines writes (Linux 6.2 or later has it)")]
    Unsupported,
    /// Landlock said no.
    #[error("Landlock could not be set up: {0}")]
    Landlock(String),
    /// The filter of system calls could not be set.
    #[error("the filter of system calls could not be set up: {0}")]
    Filter(String),
    /// The privileges of root could not be given up.
    #[error("the privileges of root could not be given up: {0}")]
    Capability(io::ErrorKind),
    /// Toolgate's own files could not be hidden.
    #[error("Toolgate's own files could not be hidden: {0}")]
    Hide(io::ErrorKind),
    /// What it may take could not be bounded.
    #[error("memory, processes and files could not be bounded: {0}")]
    Bounds(io::ErrorKind),
    /// No session of its own.
    #[error("the command could not be given a session of its own: {0}")]
    Session(io::ErrorKind),
    /// No shell.
    #[error("the shell could not be started: {0}")]
    Exec(io::ErrorKind),
}

/// How much a program gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// All that a sandbox means.
    Full,
    /// What bubblewrap, around it, leaves open.
    Inside,
    /// Nothing: it stays in its process group, within the bounds.
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
    /// How much is given up.
    pub level: Level,
    /// How much it may take.
    pub bounds: Bounds,
    /// Directories below which it writes.
    pub writable: Vec<PathBuf>,
    /// Files and directories that it does not see.
    pub hidden: Vec<PathBuf>,
    /// Whether it uses the network.
    pub network: bool,
}

impl Confinement {
    /// As words of a command line, up to the program that is to be run.
    pub fn to_arguments(&self) -> Vec<OsString> {
        let writable = self.writable.iter().flat_map(|path| [WRITE.into(), path.into()]);
        let hidden = self.hidden.iter().flat_map(|path| [HIDE.into(), path.into()]);
        let network = self.network.then(|| NETWORK.into());
        let Bounds { memory, processes, file_size } = self.bounds;
        let bounds = [BOUNDS.into(), format!("{memory},{processes},{file_size}").into()];
        let level = [LEVEL.into(), self.level.word().into()];
        level.into_iter().chain(bounds).chain(writable).chain(hidden).chain(network).chain([END.into()]).collect()
    }

    /// Reads those words and leaves the program and its arguments.
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

/// Confines this process and becomes the program that is named after `--`. To be called with the words after
/// [`CONFINE_WORD`], before the program starts threads or opens anything. It returns only if it failed, and then
/// nothing was run.
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
            // Away from the terminal: a command must not write to it, nor type into it.
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
