//! The benchmark of policies and guardians, a separate program under `crates/toolgate/benches`.

use crate::process::{cargo, run as run_program};

/// Runs the parts that are named, or all.
pub fn run(parts: &[&str]) -> Result<(), String> {
    let mut benchmark = cargo(&["bench", "--package", "toolgate", "--bench", "guard", "--"]);
    run_program(benchmark.args(parts))
}
