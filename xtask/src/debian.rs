//! Installs what the tests need from Debian's packages. Only root can; other users get the command.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::process::Stdio;

use crate::process::{program, run};

/// Installs the packages, non-interactively and without recommended ones.
pub fn install(packages: &[&str]) -> Result<(), String> {
    if !running_as_root() {
        return Err(format!("install what is missing: sudo apt-get install {}", packages.join(" ")));
    }
    println!("installing {} from Debian's packages", packages.join(" "));
    run(&mut program("apt-get", &["update", "--quiet=2"]))?;
    let mut command = program("apt-get", &["install", "--yes", "--quiet=2", "--no-install-recommends"]);
    run(command.args(packages).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null()))
}

/// Installs packages with servers, and keeps Debian from starting them.
pub fn install_without_starting(packages: &[&str]) -> Result<(), String> {
    if !running_as_root() {
        return install(packages);
    }
    let asked = fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(POLICY);
    // Where the file exists already, the machine's owner has decided.
    let Ok(mut policy) = asked else { return install(packages) };
    let written = policy.write_all(b"#!/bin/sh\nexit 101\n").map_err(|error| format!("{POLICY}: {error}"));
    drop(policy);
    let outcome = written.and_then(|()| install(packages));
    fs::remove_file(POLICY).map_err(|error| format!("{POLICY}: {error}"))?;
    outcome
}

/// Debian runs this program before it starts a service; 101 forbids it.
const POLICY: &str = "/usr/sbin/policy-rc.d";

fn running_as_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
