//! The results as tables, and the comparison with the targets.

use super::super::figures::Bound::{AtLeast, AtMost};
use super::super::figures::{P50, P99, PROCESSOR, RATE, by_round, micros, middle, percentile, ratio, target};
use super::super::gate::subject::{Footprint, Sample};
use super::super::options::Engine;
use super::super::table;
use super::message::Era;
use super::sessions::{COUNT, SessionMemory};

/// The results on one engine.
#[derive(Debug)]
pub struct Measured {
    pub engine: Engine,
    pub eras: Vec<EraLoad>,
    pub calls: GateCalls,
    pub baseline: Option<GateCalls>,
    /// The time of each `tools/list` of an agent with many tools, in microseconds.
    pub lists: Vec<f64>,
    pub sessions: SessionMemory,
    pub footprint: Footprint,
}

/// The calls of one era that do not pass the gate.
#[derive(Debug)]
pub struct EraLoad {
    pub era: Era,
    pub direct: Vec<Sample>,
    /// Through nginx.
    pub proxied: Vec<Sample>,
}

/// Calls through one gate.
#[derive(Debug, Default)]
pub struct GateCalls {
    /// The governed call over HTTP, to a service.
    pub http: Vec<Sample>,
    pub modern: Vec<Sample>,
    pub legacy: Vec<Sample>,
    /// To a server that is a process.
    pub process: Vec<Sample>,
}

impl EraLoad {
    pub fn new(era: Era) -> Self {
        Self { era, direct: Vec::new(), proxied: Vec::new() }
    }

    fn row(&self, gate: &[Sample]) -> Vec<String> {
        let mut row = vec![self.era.version().to_owned()];
        row.extend([&self.direct, &self.proxied, gate].map(|samples| format!("{:.0}", middle(samples, RATE))));
        row.extend([&self.direct, &self.proxied].map(|beside| format!("{:.3}", ratio(gate, beside, RATE))));
        for samples in [&self.direct, &self.proxied, gate] {
            row.push(format!("{} / {}", micros(middle(samples, P50)), micros(middle(samples, P99))));
        }
        row
    }
}

impl GateCalls {
    fn of(&self, era: Era) -> &[Sample] {
        match era {
            Era::Modern => &self.modern,
            Era::Legacy => &self.legacy,
        }
    }

    /// Each kind of call with its name.
    fn kinds(&self) -> [(&'static str, &[Sample]); 4] {
        [
            ("HTTP call", &self.http),
            ("MCP 2026-07-28", &self.modern),
            ("MCP 2025-11-25, in a session", &self.legacy),
            ("MCP to a process", &self.process),
        ]
    }
}

impl Measured {
    pub fn print(&self) {
        let engine = self.engine.name();
        let rows: Vec<Vec<String>> = self.eras.iter().map(|load| load.row(self.calls.of(load.era))).collect();
        let head = [
            "version",
            "direct calls/s",
            "nginx calls/s",
            "gate calls/s",
            "gate/direct",
            "gate/nginx",
            "direct p50 / p99",
            "nginx p50 / p99",
            "gate p50 / p99",
        ];
        table::print(&format!("tools/call on {engine}, 32 connections (medians of the rounds)"), &head, &rows);
        self.print_processor();
        let head = ["", "p50", "p99"];
        let row = [50, 99].map(|hundredths| format!("{:.2} ms", percentile(&self.lists, hundredths) / 1000.0));
        let row = ["tools/list of 1,000 tools".to_owned()].into_iter().chain(row).collect();
        table::print("Lists, one after the other", &head, &[row]);
        let Footprint { idle, loaded, calls, bytes_per_call } = self.footprint;
        let memory = |what: &str, megabytes: f64| vec![what.to_owned(), format!("{megabytes:.1}")];
        let rows = [
            memory("resident when idle, before servers are mounted", idle),
            memory(&format!("{COUNT} idle sessions, added"), self.sessions.sessions),
            memory("an open stream of each, added", self.sessions.streams),
            memory(&format!("resident after {calls} calls"), loaded),
        ];
        table::print("Memory", &["", "MB"], &rows);
        println!("\n{bytes_per_call:.0} bytes on disk per call");
        println!("\nTargets");
        for target in self.targets() {
            println!("{target}");
        }
    }

    /// CPU per call of each kind of call, beside the call over HTTP, and beside the baseline.
    fn print_processor(&self) {
        let mut head = vec!["call", "calls/s", "CPU per call", "beside the HTTP call"];
        if self.baseline.is_some() {
            head.extend(["CPU per call of the baseline", "ratio", "calls/s of the baseline", "ratio"]);
        }
        let mut rows = Vec::new();
        for (number, (name, samples)) in self.calls.kinds().into_iter().enumerate() {
            let mut row = vec![name.to_owned(), format!("{:.0}", middle(samples, RATE))];
            row.push(micros(middle(samples, PROCESSOR)));
            row.push(format!("{:.2}", ratio(samples, &self.calls.http, PROCESSOR)));
            if let Some((_, before)) = self.baseline.as_ref().and_then(|calls| calls.kinds().into_iter().nth(number)) {
                row.push(micros(middle(before, PROCESSOR)));
                row.push(format!("{:.2}", ratio(samples, before, PROCESSOR)));
                row.push(format!("{:.0}", middle(before, RATE)));
                row.push(format!("{:.2}", ratio(samples, before, RATE)));
            }
            rows.push(row);
        }
        for load in &self.eras {
            let name = format!("nginx as a proxy, {}", load.era.version());
            let processor = micros(middle(&load.proxied, PROCESSOR));
            rows.push(vec![name, format!("{:.0}", middle(&load.proxied, RATE)), processor]);
        }
        table::print("CPU per call (user and system, until the process is idle again)", &head, &rows);
    }

    /// Each target with the result. A missed target is not a failure: the machine may be busy.
    fn targets(&self) -> Vec<String> {
        let mut targets = Vec::new();
        let calls = &self.calls;
        for load in &self.eras {
            let (version, gate) = (load.era.version(), calls.of(load.era));
            let beside = |beside: &[Sample]| ratio(gate, beside, RATE);
            targets.push(target(&format!("{version}: throughput beside direct"), beside(&load.direct), AtLeast(0.21)));
            targets.push(target(&format!("{version}: throughput beside nginx"), beside(&load.proxied), AtLeast(0.37)));
            let processor = ratio(gate, &calls.http, PROCESSOR);
            targets.push(target(&format!("{version}: CPU beside the HTTP call"), processor, AtMost(1.2)));
        }
        let added = by_round(&calls.process, &calls.modern, |process, http| process.processor - http.processor);
        targets.push(target("CPU that a process adds to a call, microseconds", added, AtMost(60.0)));
        targets.push(target("tools/list of 1,000 tools, ms", percentile(&self.lists, 50) / 1000.0, AtMost(2.0)));
        targets.push(target("1,000 idle sessions, MB", self.sessions.sessions, AtMost(20.0)));
        targets
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::gate::load::Figures;
    use super::*;

    fn samples(rate: f64, processor: f64) -> Vec<Sample> {
        vec![Sample { figures: Figures { calls: 1, rate, p50: 100.0, p99: 200.0 }, processor }; 3]
    }

    fn measured(rate: f64, processor: f64) -> Measured {
        let load = |era| EraLoad { era, direct: samples(10_000.0, 0.0), proxied: samples(5_000.0, 20.0) };
        Measured {
            engine: Engine::Sqlite,
            eras: Era::ALL.into_iter().map(load).collect(),
            calls: GateCalls {
                http: samples(3_000.0, 100.0),
                modern: samples(rate, processor),
                legacy: samples(rate, processor),
                process: samples(rate, processor + 50.0),
            },
            baseline: None,
            lists: vec![1_900.0],
            sessions: SessionMemory { sessions: 1.0, streams: 10.0 },
            footprint: Footprint { idle: 20.0, loaded: 48.0, calls: 300_000, bytes_per_call: 900.0 },
        }
    }

    #[test]
    fn a_missed_target_is_named() {
        assert!(measured(2_100.0, 120.0).targets().iter().all(|line| line.starts_with("  met ")));
        let missed = measured(1_800.0, 121.0).targets();
        assert_eq!(missed[0], "  MISSED  2026-07-28: throughput beside direct: 0.18, at least 0.21");
        assert_eq!(missed[1], "  MISSED  2026-07-28: throughput beside nginx: 0.36, at least 0.37");
        assert_eq!(missed[2], "  MISSED  2026-07-28: CPU beside the HTTP call: 1.21, at most 1.2");
        assert!(missed[6..].iter().all(|line| line.starts_with("  met ")), "{missed:?}");
    }
}
