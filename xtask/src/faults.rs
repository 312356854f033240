//! `cargo xtask faults`: the fault matrix. Each row is a fault that is injected into the real binary, with the required
//! behaviour of the gate, and the tests that show it on each engine. They are system tests of the crate `toolgate`, so
//! that nothing is written twice; those that load the machine are run by this command only.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};

use self::rows::{ROWS, Row};
use crate::cluster::Durability;
use crate::process::cargo;
use crate::{postgres, programs};

pub mod rows;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
}

/// Runs every row and prints the table.
pub fn run() -> ExitCode {
    match matrix() {
        Ok(failed) => ExitCode::from(u8::from(failed > 0)),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the number of failed rows.
fn matrix() -> Result<usize, String> {
    programs::install(&["nginx"])?;
    let cluster = postgres::start(Durability::Memory)?;
    let tests: Vec<&str> = ROWS.iter().flat_map(Row::tests).collect();
    // Two at a time: more would measure each other's load.
    let mut command = cargo(&["test", "--package", "toolgate", "--test", "system", "--"]);
    command.args(["--include-ignored", "--exact", "--test-threads", "2"]).args(&tests);
    command.env(postgres::VARIABLE, cluster.url());
    let outcomes = outcomes(&mut command)?;
    print!("{}", table(&outcomes));
    let cells: Vec<_> =
        ROWS.iter().flat_map(|row| row.engines().map(|tests| cell(tests, &outcomes))).flatten().collect();
    let failed = cells.iter().filter(|outcome| **outcome == Outcome::Failed).count();
    println!("{} passed, {failed} failed", cells.len() - failed);
    Ok(failed)
}

/// Runs tests, passes their output on, and parses the outcome of each.
fn outcomes(command: &mut Command) -> Result<BTreeMap<String, Outcome>, String> {
    let failed = |error: std::io::Error| format!("cargo test could not be run: {error}");
    let mut process = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut outcomes = BTreeMap::new();
    if let Some(output) = process.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.map_err(failed)?;
            println!("{line}");
            if let Some((name, outcome)) = outcome(&line) {
                outcomes.insert(name.to_owned(), outcome);
            }
        }
    }
    process.wait().map_err(failed)?;
    Ok(outcomes)
}

/// Reads `test NAME ... ok`.
fn outcome(line: &str) -> Option<(&str, Outcome)> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    match outcome {
        "ok" => Some((name, Outcome::Passed)),
        "FAILED" => Some((name, Outcome::Failed)),
        _ => None,
    }
}

/// The outcome of the tests of one row on one engine; `None` if the row does not apply to it.
fn cell(tests: &[&str], outcomes: &BTreeMap<String, Outcome>) -> Option<Outcome> {
    if tests.is_empty() {
        return None;
    }
    // A test that did not run has shown nothing.
    let passed = tests.iter().all(|test| outcomes.get(*test) == Some(&Outcome::Passed));
    Some(if passed { Outcome::Passed } else { Outcome::Failed })
}

fn table(outcomes: &BTreeMap<String, Outcome>) -> String {
    let word = |tests: &[&str]| match cell(tests, outcomes) {
        Some(Outcome::Passed) => "pass",
        Some(Outcome::Failed) => "FAIL",
        None => "-",
    };
    let width = |of: fn(&Row) -> &str| ROWS.iter().map(|row| of(row).len()).max().unwrap_or(0);
    let (faults, injected) = (width(|row| row.fault), width(|row| row.injected));
    let mut text =
        format!("\n{:faults$}  {:6}  {:10}  {:injected$}  must\n", "fault", "SQLite", "PostgreSQL", "injected");
    for row in ROWS {
        let [sqlite, postgres] = row.engines().map(word);
        let Row { fault, injected: how, must, .. } = row;
        text.push_str(&format!("{fault:faults$}  {sqlite:6}  {postgres:10}  {how:injected$}  {must}\n"));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tests_are_read() {
        assert_eq!(outcome("test a::b ... ok"), Some(("a::b", Outcome::Passed)));
        assert_eq!(outcome("test a::b ... FAILED"), Some(("a::b", Outcome::Failed)));
        assert_eq!(outcome("test a::b has been running for over 60 seconds"), None);
        assert_eq!(outcome("test result: ok. 2 passed"), None);
    }

    #[test]
    fn a_test_that_did_not_run_has_failed_and_no_test_is_no_cell() {
        let outcomes = BTreeMap::from([("one".to_owned(), Outcome::Passed), ("two".to_owned(), Outcome::Failed)]);
        assert_eq!(cell(&["one"], &outcomes), Some(Outcome::Passed));
        assert_eq!(cell(&["one", "two"], &outcomes), Some(Outcome::Failed));
        assert_eq!(cell(&["one", "missing"], &outcomes), Some(Outcome::Failed));
        assert_eq!(cell(&[], &outcomes), None);
    }
}
