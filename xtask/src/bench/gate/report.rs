//! What was measured, as tables, and whether the targets are met.

use super::subject::Sample;

/// What one engine did.
#[derive(Debug)]
pub struct Measured {
    /// SQLite or PostgreSQL.
    pub engine: &'static str,
    /// One for each number of connections.
    pub loads: Vec<Load>,
    /// Calls that the gate with few grants had answered when its memory was read.
    pub calls: u64,
    /// Memory of the gate with few grants and of the one with many, in megabytes.
    pub resident: [f64; 2],
    /// What was measured one by one.
    pub alone: Alone,
}

/// Times of single things, one after the other, in microseconds.
#[derive(Debug, Default)]
pub struct Alone {
    /// Calls of the service itself.
    pub direct: Vec<f64>,
    /// Calls through the gate with few grants in its ledger.
    pub gate: Vec<f64>,
    /// Bare flushes.
    pub flushes: Vec<f64>,
}

/// All rounds with one number of connections.
#[derive(Debug)]
pub struct Load {
    /// How many callers at a time.
    pub connections: u32,
    /// Calls of the service itself; without a gate there is no processor time.
    pub direct: Vec<Sample>,
    /// Calls through the gate with few grants in its ledger.
    pub few: Vec<Sample>,
    /// Calls through the gate with many.
    pub many: Vec<Sample>,
}

impl Measured {
    /// Prints the tables. `grants` are the numbers of few and many.
    pub fn print(&self, grants: [u64; 2]) {
        let throughput: Vec<Vec<String>> = self.loads.iter().map(Load::row).collect();
        let head = [
            "connections",
            "direct calls/s",
            "gate calls/s",
            "ratio",
            "direct p50",
            "direct p99",
            "gate p50",
            "gate p99",
            "CPU per call",
        ];
        table(
            &format!("Calls through the gate on {}, beside direct calls (medians of the rounds)", self.engine),
            &head,
            &throughput,
        );

        let mut rows = Vec::new();
        for load in &self.loads {
            for (count, samples) in grants.iter().zip([&load.few, &load.many]) {
                rows.push(vec![
                    load.connections.to_string(),
                    count.to_string(),
                    format!("{:.0}", middle(samples, |sample| sample.figures.rate)),
                    micros(middle(samples, |sample| sample.figures.p50)),
                    micros(middle(samples, |sample| sample.processor)),
                ]);
            }
        }
        table("Cost by grants in the ledger", &["connections", "grants", "calls/s", "p50", "CPU per call"], &rows);

        if let Some(single) = self.loads.iter().find(|load| load.connections == 1) {
            let Alone { direct, gate, flushes } = &self.alone;
            let (corrected_p50, corrected_p99) = single.added();
            let rows = [("p50", 50, corrected_p50), ("p99", 99, corrected_p99)].map(|(name, hundredths, corrected)| {
                let added = percentile(gate, hundredths) - percentile(direct, hundredths);
                let flush = percentile(flushes, hundredths);
                let times = format!("{:.1}", added / flush);
                vec![name.to_owned(), micros(added), micros(corrected), micros(flush), times]
            });
            let title = "Latency that the gate adds at 1 connection, beside one bare flush (a call is recorded twice)";
            let head = ["", "added, call by call", "as wrk corrects it", "bare fdatasync", "flushes"];
            table(title, &head, &rows);
        }
        let [few, many] = self.resident;
        println!(
            "\nResident memory after {} calls: {few:.1} MB with {} grants; {many:.1} MB with {}",
            self.calls, grants[0], grants[1]
        );
    }

    /// Prints each target with what was reached. A missed target is no failure: the machine may be busy.
    pub fn print_targets(&self) {
        println!("\nTargets");
        for target in self.targets() {
            println!("{target}");
        }
    }

    fn targets(&self) -> Vec<String> {
        let mut targets = Vec::new();
        if let Some(load) = self.loads.iter().find(|load| load.connections == 64) {
            let [few, many] = [&load.few, &load.many].map(|samples| middle(samples, |sample| sample.processor));
            targets.push(target("CPU per call at 64 connections, microseconds", few, AtMost(100.0)));
            targets.push(target("throughput beside direct at 64 connections", load.ratio(), AtLeast(0.1)));
            targets.push(target("CPU per call with many grants beside few", many / few, AtMost(1.15)));
        }
        targets.push(target(&format!("resident after {} calls, MB", self.calls), self.resident[0], AtMost(60.0)));
        targets
    }
}

impl Load {
    fn row(&self) -> Vec<String> {
        let Self { connections, direct, few, .. } = self;
        vec![
            connections.to_string(),
            format!("{:.0}", middle(direct, |sample| sample.figures.rate)),
            format!("{:.0}", middle(few, |sample| sample.figures.rate)),
            format!("{:.3}", self.ratio()),
            micros(middle(direct, |sample| sample.figures.p50)),
            micros(middle(direct, |sample| sample.figures.p99)),
            micros(middle(few, |sample| sample.figures.p50)),
            micros(middle(few, |sample| sample.figures.p99)),
            micros(middle(few, |sample| sample.processor)),
        ]
    }

    /// Of each round by itself, so that what else the machine does falls on both alike.
    fn ratio(&self) -> f64 {
        let ratios = self.direct.iter().zip(&self.few).map(|(direct, few)| few.figures.rate / direct.figures.rate);
        percentile(&ratios.collect::<Vec<_>>(), 50)
    }

    fn added(&self) -> (f64, f64) {
        let added = |pick: fn(&Sample) -> f64| {
            let rounds = self.direct.iter().zip(&self.few).map(|(direct, few)| pick(few) - pick(direct));
            percentile(&rounds.collect::<Vec<_>>(), 50)
        };
        (added(|sample| sample.figures.p50), added(|sample| sample.figures.p99))
    }
}

/// What a figure must be.
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}
use Bound::{AtLeast, AtMost};

fn target(what: &str, reached: f64, bound: Bound) -> String {
    let (word, limit, met) = match bound {
        AtMost(limit) => ("at most", limit, reached <= limit),
        AtLeast(limit) => ("at least", limit, reached >= limit),
    };
    let verdict = if met { "met" } else { "MISSED" };
    format!("  {verdict:<6}  {what}: {reached:.2}, {word} {limit}")
}

fn middle(samples: &[Sample], pick: fn(&Sample) -> f64) -> f64 {
    percentile(&samples.iter().map(pick).collect::<Vec<_>>(), 50)
}

/// The value that this many of a hundred are below; not a number where there is none.
fn percentile(values: &[f64], hundredths: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() * hundredths / 100).copied().unwrap_or(f64::NAN)
}

fn micros(time: f64) -> String {
    format!("{time:.0} us")
}

/// Prints with the columns aligned.
fn table(title: &str, head: &[&str], rows: &[Vec<String>]) {
    println!("\n{title}\n");
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(String::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for (number, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
        if number == 0 {
            println!("|{}|", widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("|"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::Figures;
    use super::*;

    fn samples(rate: f64, processor: f64) -> Vec<Sample> {
        vec![Sample { figures: Figures { calls: 1, rate, p50: 100.0, p99: 200.0 }, processor }; 3]
    }

    fn measured(rate: f64, processor: f64) -> Measured {
        let load = Load {
            connections: 64,
            direct: samples(100_000.0, 0.0),
            few: samples(rate, processor),
            many: samples(rate, processor),
        };
        let alone = Alone { flushes: vec![80.0], ..Alone::default() };
        Measured { engine: "SQLite", loads: vec![load], calls: 100_000, resident: [48.0, 50.0], alone }
    }

    #[test]
    fn a_missed_target_is_named() {
        assert!(measured(10_000.0, 99.0).targets().iter().all(|line| line.starts_with("  met ")));
        let missed = measured(9_000.0, 101.0).targets();
        assert_eq!(missed[0], "  MISSED  CPU per call at 64 connections, microseconds: 101.00, at most 100");
        assert_eq!(missed[1], "  MISSED  throughput beside direct at 64 connections: 0.09, at least 0.1");
        assert!(missed[2..].iter().all(|line| line.starts_with("  met ")), "{missed:?}");
    }

    #[test]
    fn percentiles_are_taken_from_sorted_values() {
        let values: Vec<f64> = (0..100).rev().map(f64::from).collect();
        assert_eq!((percentile(&values, 50), percentile(&values, 99)), (50.0, 99.0));
        assert_eq!(percentile(&[3.0, 1.0, 2.0], 50), 2.0);
        assert!(percentile(&[], 50).is_nan());
    }
}
