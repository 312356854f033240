//! `cargo xtask deny`: licences, banned crates and sources of all dependencies, by the rules in `deny.toml`.

use std::process::{ExitCode, Stdio};

use crate::process::{cargo, run as run_program};

/// Runs cargo-deny; a machine without it is told how to get it.
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

/// Checks where cargo-deny is installed; answers whether it is. Advisories need the network, and are left to people.
pub fn check() -> Result<bool, String> {
    let version = cargo(&["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        return Ok(false);
    }
    run_program(&mut cargo(&["deny", "--log-level", "error", "check", "bans", "licenses", "sources"])).map(|()| true)
}
