//! The results as tables, and the comparison with the targets.

use super::super::figures::Bound::{AtLeast, AtMost};
use super::super::figures::{P50, P99, PROCESSOR, RATE, by_round, micros, middle, percentile, ratio, target};
use super::super::options::Engine;
use super::super::table;
use super::subject::{Footprint, Sample};

/// The results on one engine.
#[derive(Debug)]
pub struct Measured {
    pub engine: Engine,
    /// One for each number of connections.
    pub loads: Vec<Load>,
    pub footprints: Footprints,
    pub alone: Alone,
}

/// Memory and disk of each gate.
#[derive(Debug)]
pub struct Footprints {
    pub few: Footprint,
    pub many: Option<Footprint>,
    pub baseline: Option<Footprint>,
}

/// Times of single things, one after the other, in microseconds.
#[derive(Debug, Default)]
pub struct Alone {
    /// Calls of the service itself.
    pub direct: Vec<f64>,
    /// Calls through the gate with few grants in its ledger.
    pub gate: Vec<f64>,
    pub flushes: Vec<f64>,
}

/// All rounds with one number of connections.
#[derive(Debug)]
pub struct Load {
    pub connections: u32,
    /// Calls of the service itself; without a gate there is no CPU time.
    pub direct: Vec<Sample>,
    /// Calls through the gate with few grants in its ledger.
    pub few: Vec<Sample>,
    /// Calls through the gate with many; none where it was left out.
    pub many: Vec<Sample>,
    /// Calls through the baseline, with few grants; empty without a baseline.
    pub baseline: Vec<Sample>,
}

impl Measured {
    /// Prints the tables. `grants` are the numbers of few and many.
    pub fn print(&self, grants: [u64; 2]) {
        let engine = self.engine.name();
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
        let title = format!("Calls through the gate on {engine}, beside direct calls (medians of the rounds)");
        table::print(&title, &head, &throughput);

        if self.footprints.baseline.is_some() {
            let rows: Vec<Vec<String>> = self.loads.iter().map(Load::comparison).collect();
            let figures = ["calls/s", "CPU per call", "p50"].map(|figure| [figure, "baseline", "ratio"]);
            let head: Vec<&str> = std::iter::once("connections").chain(figures.into_iter().flatten()).collect();
            table::print(
                &format!("Beside the baseline on {engine} (medians of the rounds and of their ratios)"),
                &head,
                &rows,
            );
        }
        if self.footprints.many.is_some() {
            self.print_by_grants(grants);
        }
        if !self.alone.gate.is_empty() {
            self.print_added_latency();
        }
        let head = ["gate", "calls", "MB resident when idle", "MB after the calls", "bytes on disk per call"];
        table::print(&format!("Memory and disk on {engine}"), &head, &self.footprints.rows(grants));
        println!("\nTargets");
        for target in self.targets() {
            println!("{target}");
        }
    }

    fn print_by_grants(&self, grants: [u64; 2]) {
        let mut rows = Vec::new();
        for load in &self.loads {
            for (count, samples) in grants.iter().zip([&load.few, &load.many]) {
                rows.push(vec![
                    load.connections.to_string(),
                    count.to_string(),
                    format!("{:.0}", middle(samples, RATE)),
                    micros(middle(samples, P50)),
                    micros(middle(samples, PROCESSOR)),
                ]);
            }
        }
        let head = ["connections", "grants", "calls/s", "p50", "CPU per call"];
        table::print("Cost by grants in the ledger", &head, &rows);
    }

    fn print_added_latency(&self) {
        let Some(single) = self.loads.iter().find(|load| load.connections == 1) else { return };
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
        table::print(title, &head, &rows);
    }

    /// Each target with the result. A missed target is not a failure: the machine may be busy.
    fn targets(&self) -> Vec<String> {
        let Footprint { idle, loaded, calls, bytes_per_call } = self.footprints.few;
        let mut targets = Vec::new();
        let bytes = match self.engine {
            Engine::Sqlite => {
                if let Some(load) = self.loads.iter().find(|load| load.connections == 64) {
                    let few = middle(&load.few, PROCESSOR);
                    targets.push(target("CPU per call at 64 connections, microseconds", few, AtMost(100.0)));
                    targets.push(target("throughput beside direct at 64 connections", load.ratio(), AtLeast(0.1)));
                    if !load.many.is_empty() {
                        let many = middle(&load.many, PROCESSOR) / few;
                        targets.push(target("CPU per call with many grants beside few", many, AtMost(1.15)));
                    }
                }
                targets.push(target("resident when idle, MB", idle, AtMost(25.0)));
                targets.push(target(&format!("resident after {calls} calls, MB"), loaded, AtMost(50.0)));
                1000.0
            }
            Engine::Postgres => 2000.0,
        };
        targets.push(target("bytes on disk per call", bytes_per_call, AtMost(bytes)));
        targets
    }
}

impl Footprints {
    fn rows(&self, grants: [u64; 2]) -> Vec<Vec<String>> {
        let row = |name: String, footprint: &Footprint| {
            let Footprint { idle, loaded, calls, bytes_per_call } = footprint;
            vec![name, calls.to_string(), format!("{idle:.1}"), format!("{loaded:.1}"), format!("{bytes_per_call:.0}")]
        };
        let mut rows = vec![row(format!("{} grants", grants[0]), &self.few)];
        rows.extend(self.many.iter().map(|many| row(format!("{} grants", grants[1]), many)));
        if let Some(baseline) = &self.baseline {
            let ratio = |pick: fn(&Footprint) -> f64| format!("{:.2}", pick(&self.few) / pick(baseline));
            rows.push(row(format!("baseline, {} grants", grants[0]), baseline));
            rows.push(vec![
                "ratio to the baseline".to_owned(),
                String::new(),
                ratio(|footprint| footprint.idle),
                ratio(|footprint| footprint.loaded),
                ratio(|footprint| footprint.bytes_per_call),
            ]);
        }
        rows
    }
}

impl Load {
    pub fn new(connections: u32) -> Self {
        Self { connections, direct: Vec::new(), few: Vec::new(), many: Vec::new(), baseline: Vec::new() }
    }

    fn row(&self) -> Vec<String> {
        let Self { connections, direct, few, .. } = self;
        vec![
            connections.to_string(),
            format!("{:.0}", middle(direct, RATE)),
            format!("{:.0}", middle(few, RATE)),
            format!("{:.3}", self.ratio()),
            micros(middle(direct, P50)),
            micros(middle(direct, P99)),
            micros(middle(few, P50)),
            micros(middle(few, P99)),
            micros(middle(few, PROCESSOR)),
        ]
    }

    /// Calls/s, CPU per call and p50, each of this build, of the baseline, and as ratio.
    fn comparison(&self) -> Vec<String> {
        let (few, baseline) = (&self.few, &self.baseline);
        let mut row = vec![self.connections.to_string()];
        for pick in [RATE, PROCESSOR, P50] {
            row.push(format!("{:.0}", middle(few, pick)));
            row.push(format!("{:.0}", middle(baseline, pick)));
            row.push(format!("{:.2}", ratio(few, baseline, pick)));
        }
        row
    }

    fn ratio(&self) -> f64 {
        ratio(&self.few, &self.direct, RATE)
    }

    fn added(&self) -> (f64, f64) {
        let added =
            |pick: fn(&Sample) -> f64| by_round(&self.direct, &self.few, |direct, few| pick(few) - pick(direct));
        (added(P50), added(P99))
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::Figures;
    use super::*;

    fn samples(rate: f64, processor: f64) -> Vec<Sample> {
        vec![Sample { figures: Figures { calls: 1, rate, p50: 100.0, p99: 200.0 }, processor }; 3]
    }

    const SMALL: Footprint = Footprint { idle: 20.0, loaded: 48.0, calls: 300_000, bytes_per_call: 900.0 };

    fn measured(rate: f64, processor: f64) -> Measured {
        let load = Load {
            direct: samples(100_000.0, 0.0),
            few: samples(rate, processor),
            many: samples(rate, processor),
            baseline: samples(5_000.0, 200.0),
            ..Load::new(64)
        };
        let alone = Alone { flushes: vec![80.0], ..Alone::default() };
        let footprints = Footprints { few: SMALL, many: Some(SMALL), baseline: None };
        Measured { engine: Engine::Sqlite, loads: vec![load], footprints, alone }
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
    fn figures_are_divided_by_those_of_the_baseline() {
        let row = measured(10_000.0, 100.0).loads[0].comparison();
        assert_eq!(row, ["64", "10000", "5000", "2.00", "100", "200", "0.50", "100", "100", "1.00"]);
        let baseline = Footprint { idle: 40.0, loaded: 60.0, calls: 200_000, bytes_per_call: 1800.0 };
        let rows = Footprints { few: SMALL, many: None, baseline: Some(baseline) }.rows([10, 20]);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[2], ["ratio to the baseline", "", "0.50", "0.80", "0.50"]);
    }
}
