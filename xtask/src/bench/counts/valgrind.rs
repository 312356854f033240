//! A gate below valgrind, and the profiles that it writes while it runs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::gate::programs;
use super::callgrind::Profile;
use crate::process::program;

/// Without ERMS and FSRM: valgrind counts each byte that `rep movsb` copies as an instruction.
const TUNABLES: &str = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-ERMS,-FSRM";

/// Events are integrated once a second, so that both loads have the same number of integrations.
const INTEGRATION: &str = "TOOLGATE_AUDIT_INTEGRATE_MILLISECONDS=1000";

/// Where one gate below valgrind leaves its profiles.
pub struct Valgrind {
    profile: PathBuf,
    pipes: PathBuf,
}

/// One profile, in a file.
pub struct Dump(PathBuf);

impl Valgrind {
    pub fn below(directory: &Path, name: &str) -> Self {
        Self { profile: directory.join(format!("{name}.callgrind")), pipes: directory.join(format!("{name}-vgdb")) }
    }

    /// The command that starts `binary`. Fair scheduling of threads keeps the batches of the ledger similar in all
    /// runs.
    pub fn command(&self, binary: &Path) -> Vec<OsString> {
        let mut command: Vec<OsString> =
            ["env", TUNABLES, INTEGRATION, "valgrind", "--tool=callgrind", "--fair-sched=yes"]
                .map(OsString::from)
                .into();
        command.push(option("--vgdb-prefix=", &self.pipes));
        command.push(option("--callgrind-out-file=", &self.profile));
        command.push(binary.into());
        command
    }

    /// Writes the counts since the last dump.
    pub fn dump(&self, process: u32) -> Result<Dump, String> {
        let mut command = program("vgdb", &[]);
        command.arg(option("--vgdb-prefix=", &self.pipes)).args([&format!("--pid={process}"), "dump"]);
        programs::output(&mut command)?;
        self.newest()
    }

    /// Dumps are numbered from 1.
    fn newest(&self) -> Result<Dump, String> {
        let numbered = |number: u32| PathBuf::from(format!("{}.{number}", self.profile.display()));
        let last = (1..).map(numbered).take_while(|path| path.exists()).last();
        last.map(Dump).ok_or_else(|| "valgrind wrote no profile".to_owned())
    }
}

impl Dump {
    pub fn profile(&self) -> Result<Profile, String> {
        let text = fs::read(&self.0).map_err(|error| format!("{}: {error}", self.0.display()))?;
        let profile = Profile::read(&String::from_utf8_lossy(&text));
        profile.ok_or_else(|| format!("{} is not a profile of callgrind", self.0.display()))
    }

    /// Copies it into a directory of the user.
    pub fn keep(&self, directory: &Path, name: &str) -> Result<(), String> {
        let copied = fs::create_dir_all(directory).and_then(|()| fs::copy(&self.0, directory.join(name)));
        copied.map(drop).map_err(|error| format!("{}: {error}", directory.display()))
    }
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}
