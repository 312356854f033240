//! `cargo xtask deny`: licences, banned crates and sources of all dependencies, by the rules in `deny.toml`.

use std::process::{ExitCode, Stdio};

use crate::process::{cargo, run as run_program};

/// Runs cargo-deny; if it is missing, prints how to install it.
pub fn run() -> ExitCode {
    match check() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            println!("cargo-deny is not installed, so nothing was checked: cargo install cargo-deny --locked");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the checks if cargo-deny is installed; returns whether it is. Advisories need the network, and are left to
/// people.
pub fn check() -> Result<bool, String> {
    let version = cargo(&["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        return Ok(false);
    }
    run_program(&mut cargo(&["deny", "--log-level", "error", "check", "bans", "licenses", "sources"])).map(|()| true)
}
