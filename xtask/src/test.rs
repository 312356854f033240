//! `cargo xtask test`: everything that must pass before a change is merged, in one command and from a bare machine.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};

use crate::cluster::Durability;
use crate::process::{cargo, describe, run as run_program};
use crate::steps::{Steps, TestCounts};
use crate::{deny, postgres, programs, python, tidy};

/// Runs every step, also after a failed one, and ends with the counts.
pub fn run() -> ExitCode {
    let mut steps = Steps::default();
    steps.check("house rules", tidy::check);
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
    let client = steps.check("Python client", python::prepare);
    steps.tests("tests", |counts| {
        let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
        if let Some(cluster) = &cluster {
            command.env(postgres::VARIABLE, cluster.url());
        }
        if let Some(python) = client {
            command.env(python::VARIABLE, python);
        }
        run_tests(&mut command, counts)
    });
    drop(cluster);
    steps.check("documentation", || {
        run_program(cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings"))
    });
    steps.finish()
}

/// Passes the output on and adds up the result line of each test program.
fn run_tests(command: &mut Command, counts: &mut TestCounts) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cargo test could not be run: {error}");
    let mut process = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(output) = process.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.map_err(failed)?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            if let Some(result) = result_line(&line) {
                counts.passed += result.passed;
                counts.failed += result.failed;
                counts.ignored += result.ignored;
            }
        }
    }
    let status = process.wait().map_err(failed)?;
    match (status.success(), *counts) {
        (true, TestCounts { passed: 0, failed: 0, .. }) => Err(format!("{} ran no test", describe(command))),
        (false, TestCounts { failed: 0, .. }) => {
            Err(format!("{}: a test program did not build or did not finish", describe(command)))
        }
        _ => Ok(()),
    }
}

/// Reads `test result: ok. 5 passed; 0 failed; 1 ignored; ...`.
fn result_line(line: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    for part in line.strip_prefix("test result: ")?.split(['.', ';']) {
        if let Some((number, what)) = part.trim().split_once(' ') {
            let field = match what {
                "passed" => &mut counts.passed,
                "failed" => &mut counts.failed,
                "ignored" => &mut counts.ignored,
                _ => continue,
            };
            *field = number.parse().ok()?;
        }
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_read() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.05s";
        assert_eq!(result_line(line), Some(TestCounts { passed: 12, failed: 3, ignored: 1 }));
        assert_eq!(result_line("test a_rule ... ok"), None);
        assert_eq!(result_line("running 3 tests"), None);
    }

    #[test]
    fn a_test_program_that_dies_without_a_result_is_a_failure() {
        let mut counts = TestCounts::default();
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'; exit 101"]);
        let error = run_tests(&mut command, &mut counts).unwrap_err();
        assert!(error.ends_with("a test program did not build or did not finish"), "{error}");
        assert_eq!(counts, TestCounts { passed: 2, failed: 0, ignored: 0 });
    }

    #[test]
    fn a_run_without_tests_is_a_failure() {
        let mut counts = TestCounts::default();
        assert_eq!(run_tests(&mut Command::new("true"), &mut counts), Err("`true` ran no test".to_owned()));
    }
}
