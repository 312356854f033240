//! The recorded figures, and the comparison of new ones with them.

use std::fs;

use crate::process::root;

/// Relative to the root of the repository.
pub const FILE: &str = "xtask/bench-counts.txt";

const HEAD: &str = "\
# Instructions and allocations of one governed, durably recorded call on SQLite: over HTTP and over MCP, by connections.
# Written by `cargo xtask bench counts --update`; `cargo xtask bench check` fails on a figure that is 5 % higher.
# call            connections  instructions  allocations
";

/// The cost of a call on this many connections.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// The kind of call, in one word.
    pub call: String,
    pub connections: u32,
    pub instructions: f64,
    pub allocations: f64,
}

/// New figures beside recorded ones.
#[derive(Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Call, connections, figure, recorded, now, ratio.
    pub rows: Vec<Vec<String>>,
    pub regressions: Vec<String>,
    /// Whether a figure is better by more than the tolerance.
    pub improved: bool,
}

pub fn read() -> Result<Vec<Counts>, String> {
    let text = fs::read_to_string(root().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    parse(&text).ok_or_else(|| format!("{FILE} cannot be read; run `cargo xtask bench counts --update`"))
}

pub fn write(counts: &[Counts]) -> Result<(), String> {
    fs::write(root().join(FILE), format(counts)).map_err(|error| format!("{FILE}: {error}"))
}

/// Every figure must be recorded: one that is not could grow unseen.
pub fn compare(recorded: &[Counts], counts: &[Counts], tolerance: f64) -> Result<Comparison, String> {
    let mut comparison = Comparison { rows: Vec::new(), regressions: Vec::new(), improved: false };
    for now in counts {
        let Counts { call, connections, .. } = now;
        let before = recorded.iter().find(|counts| counts.call == *call && counts.connections == *connections);
        let before = before.ok_or_else(|| {
            format!(
                "{FILE} has no line for {call} on {connections} connections; run `cargo xtask bench counts --update`"
            )
        })?;
        let figures = [
            ("instructions", before.instructions, now.instructions),
            ("allocations", before.allocations, now.allocations),
        ];
        for (figure, before, now) in figures {
            let ratio = now / before;
            comparison.rows.push(vec![
                call.clone(),
                connections.to_string(),
                figure.to_owned(),
                format!("{before:.0}"),
                format!("{now:.0}"),
                format!("{ratio:.3}"),
            ]);
            if ratio > 1.0 + tolerance {
                let regression = format!("{figure} of {call} on {connections} connections ({before:.0} to {now:.0})");
                comparison.regressions.push(regression);
            }
            comparison.improved |= ratio < 1.0 - tolerance;
        }
    }
    Ok(comparison)
}

fn format(counts: &[Counts]) -> String {
    let line = |Counts { call, connections, instructions, allocations }: &Counts| {
        format!("{call:<16}  {connections:<11}  {instructions:<12.0}  {allocations:.1}\n")
    };
    std::iter::once(HEAD.to_owned()).chain(counts.iter().map(line)).collect()
}

fn parse(text: &str) -> Option<Vec<Counts>> {
    let figure = |word: &str| word.parse().ok().filter(|figure: &f64| *figure > 0.0);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let counts = lines.map(|line| match line.split_whitespace().collect::<Vec<_>>().as_slice() {
        [call, connections, instructions, allocations] => Some(Counts {
            call: (*call).to_owned(),
            connections: connections.parse().ok()?,
            instructions: figure(instructions)?,
            allocations: figure(allocations)?,
        }),
        _ => None,
    });
    counts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(connections: u32, instructions: f64, allocations: f64) -> Counts {
        Counts { call: "http".to_owned(), connections, instructions, allocations }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = [counts(1, 730_677.0, 430.1), counts(16, 551_037.0, 420.5)];
        assert_eq!(parse(&format(&written)), Some(written.to_vec()));
        assert_eq!(parse("http 1 730677"), None);
        assert_eq!(parse("http 1 0 3"), None);
    }

    #[test]
    fn a_figure_above_the_tolerance_is_a_regression() {
        let recorded = [counts(1, 1000.0, 100.0), counts(16, 1000.0, 100.0)];
        let same = compare(&recorded, &[counts(1, 1049.0, 104.0), counts(16, 951.0, 96.0)], 0.05).unwrap();
        assert!(same.regressions.is_empty() && !same.improved, "{same:?}");
        let worse = compare(&recorded, &[counts(1, 1000.0, 106.0), counts(16, 900.0, 100.0)], 0.05).unwrap();
        assert_eq!(worse.regressions, ["allocations of http on 1 connections (100 to 106)"]);
        assert!(worse.improved);
    }

    #[test]
    fn a_figure_that_is_not_recorded_fails_the_comparison() {
        let error = compare(&[], &[counts(1, 1.0, 1.0)], 0.05).unwrap_err();
        assert!(error.contains("no line for http on 1 connections"), "{error}");
    }

    #[test]
    fn the_repository_holds_figures() {
        assert!(!read().unwrap().is_empty());
    }
}
