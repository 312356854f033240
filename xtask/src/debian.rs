//! Installing what the tests need from Debian's packages. Only root can; anyone else is told the command.

use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use crate::process::{program, run};

/// Installs the packages, without a question and without what they merely recommend.
pub fn install(packages: &[&str]) -> Result<(), String> {
    if !running_as_root() {
        return Err(format!("install what is missing: sudo apt-get install {}", packages.join(" ")));
    }
    println!("installing {} from Debian's packages", packages.join(" "));
    run(&mut program("apt-get", &["update", "--quiet=2"]))?;
    let mut command = program("apt-get", &["install", "--yes", "--quiet=2", "--no-install-recommends"]);
    run(command.args(packages).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null()))
}

fn running_as_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
