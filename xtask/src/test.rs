//! `cargo xtask test`: everything that must pass before a change is merged, in one command and from a bare machine.

use std::process::ExitCode;

use crate::cluster::Durability;
use crate::process::{cargo, run as run_program};
use crate::steps::Steps;
use crate::{deny, node, postgres, programs, python, test_programs, tidy};

/// Runs every step, also after a failed one, and ends with the counts.
pub fn run() -> ExitCode {
    let mut steps = Steps::default();
    steps.check("repository conventions", tidy::check);
    steps.check("format", || run_program(&mut cargo(&["fmt", "--all", "--check"])));
    steps.check("lints", || {
        run_program(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
    });
    steps.check("dependencies", || {
        deny::check().map(|checked| {
            if !checked {
                println!("left out: cargo-deny is not installed (cargo install cargo-deny --locked)");
            }
        })
    });
    let cluster = steps.check("PostgreSQL", || postgres::start(Durability::Memory));
    steps.check("nginx", || programs::install(&["nginx"]));
    let client = steps.check("Python packages", python::prepare);
    let packages = steps.check("npm packages", node::prepare);
    steps.tests("tests", |counts| {
        test_programs::run(counts, &|command| {
            if let Some(cluster) = &cluster {
                command.env(postgres::VARIABLE, cluster.url());
            }
            if let Some(python) = &client {
                command.env(python::VARIABLE, python);
            }
            if let Some(directory) = &packages {
                command.env(node::VARIABLE, directory);
            }
        })
    });
    drop(cluster);
    steps.check("documentation", || {
        run_program(cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings"))
    });
    steps.finish()
}
