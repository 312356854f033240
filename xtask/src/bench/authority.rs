//! The benchmark of grants and the audit log, a separate program under `crates/toolgate/benches`.

use crate::cluster::Durability;
use crate::postgres;
use crate::process::{cargo, run as run_program};

/// Runs the parts that are named, or all.
pub fn run(parts: &[&str]) -> Result<(), String> {
    let cluster = postgres::start(Durability::Disk)?;
    let mut benchmark = cargo(&["bench", "--package", "toolgate", "--bench", "authority", "--"]);
    run_program(benchmark.args(parts).env(postgres::VARIABLE, cluster.url()))
}
