//! Running other programs in the repository's root, and saying in one sentence which of them failed.

use std::path::PathBuf;
use std::process::Command;

pub fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    own.parent().map(PathBuf::from).unwrap_or_default()
}

/// A program that will run in the root.
pub fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    command
}

/// The cargo that runs this program.
pub fn cargo(arguments: &[&str]) -> Command {
    program(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()), arguments)
}

/// Runs to the end; anything but success is an error.
pub fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{} could not be started: {error}", describe(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", describe(command))) }
}

/// The command as a person would type it.
pub fn describe(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    let words = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    format!("`{}`", std::iter::once(name).chain(words).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_is_named_as_it_was_called() {
        let error = run(&mut program("/bin/sh", &["-c", "exit 3"])).unwrap_err();
        assert_eq!(error, "`sh -c exit 3` failed: exit status: 3");
    }
}
