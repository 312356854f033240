//! Python packages that the tests run unmodified, in their own environment under `target/`: the official clients of
//! OpenIntent, of the Model Context Protocol and of A2A, agent frameworks, schemathesis, which checks the OpenAPI document,
//! and a client generator, which must understand it; and what builds and checks our own client.

use std::fs;
use std::path::{Path, PathBuf};

use crate::debian;
use crate::process::{program, root, run};

/// The variable with the path of their Python for the tests.
pub const VARIABLE: &str = "TOOLGATE_TEST_PYTHON";

/// Hypothesis generates the requests of schemathesis: another version would generate others.
const PACKAGES: [&str; 17] = [
    "openintent==0.17.0",
    "a2a-sdk[http-server]==1.3.0",
    "schemathesis==4.32.5",
    "hypothesis==6.170.15",
    "openapi-python-client==0.29.1",
    "mcp==2.3.0",
    "openai-agents==0.24.0",
    "openai==3.51.0",
    "anthropic==2.8.0",
    "pydantic-ai-slim[mcp]==2.66.0",
    "langchain-core==1.6.13",
    "httpx==0.28.1",
    "jsonschema==4.26.0",
    "pytest==9.2.0",
    "mypy==2.4.1",
    "ruff==0.17.5",
    "hatchling==1.33.0",
];

/// Creates the environment if it does not exist, and returns the path of its Python.
pub fn prepare() -> Result<PathBuf, String> {
    let environment = root().join("target/python");
    let python = environment.join("bin/python");
    let marker = environment.join("installed");
    let wanted = PACKAGES.join(" ");
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) && python.exists() {
        println!("{wanted}: all there");
        return Ok(python);
    }
    if let Err(error) = make(&environment) {
        println!("{error}");
        debian::install(&["python3", "python3-venv"])?;
        make(&environment)?;
    }
    let arguments = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"];
    run(program(&python.to_string_lossy(), &arguments).args(PACKAGES).env_remove("PYTHONPATH"))?;
    fs::write(&marker, &wanted).map_err(|error| format!("{}: {error}", marker.display()))?;
    Ok(python)
}

fn make(environment: &Path) -> Result<(), String> {
    run(program("python3", &["-m", "venv", "--clear"]).arg(environment))
}
