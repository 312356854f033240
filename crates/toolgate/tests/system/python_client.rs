//! Our own Python client: its tests, which start this binary themselves, in the environment that `cargo xtask test` prepares.

use std::path::Path;
use std::process::Command;

use crate::openintent_sdk::python;

#[test]
fn the_tests_of_the_python_client_pass() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python");
    let output = Command::new(python())
        // Nothing of this machine: no proxies, no other packages.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TOOLGATE_BINARY", env!("CARGO_BIN_EXE_toolgate"))
        .env("PYTHONPATH", "src")
        .args(["-B", "-m", "pytest", "--quiet"])
        .current_dir(package)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains(" passed"), "{}: {said}", output.status);
}
