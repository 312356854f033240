//! `cargo xtask bench`: the benchmarks, in a release build, on a PostgreSQL that waits for the disk as production does.

use std::process::ExitCode;

use crate::cluster::Durability;
use crate::postgres;
use crate::process::{cargo, run as run_program};

/// Runs the benchmarks, passing `arguments` on to them.
pub fn run(arguments: &[String]) -> ExitCode {
    match build_and_run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn build_and_run(arguments: &[String]) -> Result<(), String> {
    run_program(&mut cargo(&["build", "--release", "--package", "toolgate"]))?;
    let cluster = postgres::start(Durability::Disk)?;
    let mut benchmarks = cargo(&["bench", "--package", "toolgate", "--bench", "authority", "--"]);
    run_program(benchmarks.args(arguments).env(postgres::VARIABLE, cluster.url()))
}
