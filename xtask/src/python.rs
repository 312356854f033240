//! The official Python client, which the tests run unmodified, in an environment of its own under `target/`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::debian;
use crate::process::{program, root, run};

/// The variable that tells the tests which Python has the client.
pub const VARIABLE: &str = "TOOLGATE_TEST_PYTHON";

const CLIENT: &str = "openintent==0.17.0";

/// Makes the environment unless it is there already, and returns the path of its Python.
pub fn prepare() -> Result<PathBuf, String> {
    let environment = root().join("target/python");
    let python = environment.join("bin/python");
    let stamp = environment.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == CLIENT) && python.exists() {
        println!("{CLIENT} is there");
        return Ok(python);
    }
    if let Err(error) = make(&environment) {
        println!("{error}");
        debian::install(&["python3", "python3-venv"])?;
        make(&environment)?;
    }
    let arguments = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", CLIENT];
    run(program(&python.to_string_lossy(), &arguments).env_remove("PYTHONPATH"))?;
    fs::write(&stamp, CLIENT).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python)
}

fn make(environment: &Path) -> Result<(), String> {
    run(program("python3", &["-m", "venv", "--clear"]).arg(environment))
}
