//! npm packages that the tests run unmodified, in `target/node`: the official clients, servers and conformance kit of the
//! Model Context Protocol, an OpenID Connect provider, and the Node.js that runs them. `crates/toolgate/tests/node` has their
//! versions and hashes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{program, root, run};
use crate::{debian, programs};

/// The variable with the path of the directory for the tests.
pub const VARIABLE: &str = "TOOLGATE_TEST_NODE";

const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs the packages unless they are there, and returns their directory.
pub fn prepare() -> Result<PathBuf, String> {
    let (source, directory) = (root().join("crates/toolgate/tests/node"), root().join("target/node"));
    let marker = directory.join("installed");
    let wanted = read(&source.join("package-lock.json"))?;
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
        println!("{}: all there", directory.display());
        return Ok(directory);
    }
    if programs::find("npm").is_none() {
        debian::install(&["npm"])?;
    }
    fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    for name in MANIFESTS {
        write(&directory.join(name), &read(&source.join(name))?)?;
    }
    // No scripts: a package needs none of them, and they would run as this account.
    let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    run(program("npm", &arguments).current_dir(&directory)).map_err(|error| {
        format!(
            "{error}; the MCP clients, servers and conformance kit come from the npm registry, which must be reachable"
        )
    })?;
    write(&marker, &wanted)?;
    Ok(directory)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
