//! The programs that tests, benchmarks and the fault matrix run beside the gate.

use std::path::PathBuf;

use crate::debian;

/// Each program with its Debian package.
const PACKAGES: [(&str, &str); 4] =
    [("nginx", "nginx-light"), ("wrk", "wrk"), ("sqlite3", "sqlite3"), ("valgrind", "valgrind")];

/// Installs those of these programs that are missing.
pub fn install(programs: &[&str]) -> Result<(), String> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(program, _)| programs.contains(program) && find(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() { Ok(()) } else { debian::install_without_starting(&missing) }
}

/// The path of a program; servers are often outside the `PATH` of an ordinary user.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    directories.find_map(|directory| Some(directory.join(name)).filter(|place| place.is_file()))
}
