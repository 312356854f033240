//! The program's other life: started with [`CONFINE_WORD`], it gives up what a command must not do and becomes the
//! shell.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// The first word on the command line of a program that is to confine itself.
pub const CONFINE_WORD: &str = "workspace-exec";

const WRITE: &str = "--write";
const HIDE: &str = "--hide";
const NETWORK: &str = "--network";
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
    /// No session of its own.
    #[error("the command could not be given a session of its own: {0}")]
    Session(io::ErrorKind),
    /// No shell.
    #[error("the shell could not be started: {0}")]
    Exec(io::ErrorKind),
}

/// What a confined command may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// Directories below which it writes.
    pub writable: Vec<PathBuf>,
    /// Directories that it does not read.
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
        writable.chain(hidden).chain(network).chain([END.into()]).collect()
    }

    /// Reads those words and leaves the program and its arguments.
    fn from_arguments(words: &mut impl Iterator<Item = OsString>) -> Result<Self, ConfineError> {
        let mut confinement = Self { writable: Vec::new(), hidden: Vec::new(), network: false };
        loop {
            let word = words.next().ok_or(ConfineError::Usage)?;
            match word.to_str() {
                Some(WRITE) => confinement.writable.push(words.next().ok_or(ConfineError::Usage)?.into()),
                Some(HIDE) => confinement.hidden.push(words.next().ok_or(ConfineError::Usage)?.into()),
                Some(NETWORK) => confinement.network = true,
                Some(END) => return Ok(confinement),
                _ => return Err(ConfineError::Usage),
            }
        }
    }
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

    // Away from the terminal: a command must not write to it, nor type into it.
    rustix::process::setsid().map_err(|error| ConfineError::Session(error.kind()))?;
    super::landlock::restrict(confinement)?;
    super::filter::restrict(confinement.network)?;
    super::capability::restrict()?;
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
        for text in ["--writ /srv -- true", "--write", "--write /srv", "true", "--network"] {
            let refused = confine_and_exec(words(text));
            assert!(matches!(refused, Err(ConfineError::Usage)), "{text}");
        }
        assert!(matches!(confine_and_exec(words("--")), Err(ConfineError::Usage)));
    }
}
