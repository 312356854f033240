//! `cargo xtask bench gate`: the cost of the gate per call. wrk loads nginx directly and through the gate, in
//! alternation and in one run, with authorization, schema, constraints, rate, redaction and both durable records on;
//! with a baseline, also through the gate of another build. A call that fails, or one that is not in the ledger, fails
//! the run; a missed target does not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::load::{Request, Target};
use self::report::{Alone, Footprints, Load, Measured};
use self::scratch::Scratch;
use self::store::Store;
use self::subject::{PARAMETERS, Prepared, Sample, Subject};
use self::upstream::Upstream;
use self::usage::Ticks;
use super::options::{Engine, Options, build_directory};
use crate::cluster::Durability;
use crate::postgres;

pub mod api;
mod disk;
pub mod load;
pub mod nginx;
mod one_by_one;
pub mod programs;
mod report;
pub mod scratch;
pub mod store;
pub mod subject;
pub mod upstream;
pub mod usage;

/// Few and many grants in the ledger.
const GRANTS: [u64; 2] = [10, 1_000_000];

const CONNECTIONS: [u32; 3] = [64, 2, 1];

struct Plan {
    engine: Engine,
    rounds: usize,
    span: Duration,
    /// Memory and disk are measured after at least this many calls.
    calls: u64,
    /// Only what two builds are compared by: no gate with many grants, no bare flushes.
    quick: bool,
}

impl Plan {
    fn new(engine: Engine, quick: bool) -> Self {
        let (rounds, seconds, calls) = match (engine, quick) {
            (_, true) => (3, 2, 0),
            (Engine::Sqlite, false) => (5, 4, 300_000),
            (Engine::Postgres, false) => (3, 3, 0),
        };
        Self { engine, rounds, span: Duration::from_secs(seconds), calls, quick }
    }
}

/// Runs on the engines of the options and prints the tables.
pub fn run(options: &Options) -> Result<(), String> {
    crate::programs::install(&["nginx", "wrk", "sqlite3"])?;
    let bench = Bench::start(options)?;
    usage::print_load()?;
    if options.has(Engine::Sqlite) {
        let plan = Plan::new(Engine::Sqlite, options.quick);
        let store = |name: &str| Ok(Store::sqlite(&bench.scratch.path().join(name)));
        bench.measure(&plan, store)?.print(GRANTS);
    }
    if options.has(Engine::Postgres) {
        let cluster = postgres::start(Durability::Disk)?;
        let plan = Plan::new(Engine::Postgres, options.quick);
        bench.measure(&plan, |name| Store::postgres(&cluster.url(), name))?.print(GRANTS);
        println!("PostgreSQL's own processor time, memory and write-ahead log are not counted.");
    }
    Ok(())
}

struct Bench {
    binary: PathBuf,
    baseline: Option<PathBuf>,
    scratch: Scratch,
    upstream: Upstream,
    direct: Target,
    ticks: Ticks,
}

impl Bench {
    fn start(options: &Options) -> Result<Self, String> {
        let binary = options.binary()?;
        let scratch = Scratch::make(&build_directory()?)?;
        let upstream = Upstream::start(&scratch)?;
        let url = format!("{}{}", upstream.url(), upstream::PATH);
        let direct = Target::new(&scratch, "direct", &Request::new(url, None, PARAMETERS))?;
        Ok(Self { binary, baseline: options.baseline.clone(), scratch, upstream, direct, ticks: Ticks::ask()? })
    }

    /// Loads the service, a gate with few grants, one with many and that of the baseline in alternation, so that other
    /// load on the machine affects all alike.
    fn measure(&self, plan: &Plan, store: impl Fn(&str) -> Result<Store, String>) -> Result<Measured, String> {
        let prepare = |binary: &Path, name: &str, grants: u64| {
            println!("preparing a gate on {} with {grants} grants: {name}", plan.engine.name());
            let name = format!("{}_{name}", plan.engine.name().to_lowercase());
            let prepared = Prepared::make(binary, &self.scratch, &name, store(&name)?, &self.upstream, grants)?;
            prepared.start(&[binary.into()])
        };
        let mut gates = Gates {
            few: prepare(&self.binary, "few", GRANTS[0])?,
            many: if plan.quick { None } else { Some(prepare(&self.binary, "many", GRANTS[1])?) },
            baseline: self.baseline.as_deref().map(|binary| prepare(binary, "baseline", GRANTS[0])).transpose()?,
        };
        gates.load_all(self.ticks, Duration::from_secs(1))?;
        let mut alone = Alone::default();
        let mut loads = Vec::new();
        for connections in CONNECTIONS {
            println!("{} rounds with {connections} connections", plan.rounds);
            let mut load = Load::new(connections);
            for round in 0..plan.rounds {
                self.round(plan, &mut gates, &mut load, round)?;
                if !plan.quick {
                    self.alone(plan, &mut gates.few, connections, &mut alone)?;
                }
            }
            loads.push(load);
        }
        while gates.answered() < plan.calls {
            gates.load_all(self.ticks, plan.span)?;
        }
        Ok(Measured { engine: plan.engine, loads, footprints: gates.finish()?, alone })
    }

    /// One load of each. This build and the baseline take turns in coming first.
    fn round(&self, plan: &Plan, gates: &mut Gates, load: &mut Load, round: usize) -> Result<(), String> {
        let connections = load.connections;
        let direct = self.direct.load(connections, Duration::from_secs(if plan.quick { 1 } else { 2 }))?;
        load.direct.push(Sample { figures: direct, processor: 0.0 });
        let mut pair = vec![(&mut gates.few, &mut load.few)];
        pair.extend(gates.baseline.as_mut().map(|baseline| (baseline, &mut load.baseline)));
        if round % 2 == 1 {
            pair.reverse();
        }
        pair.extend(gates.many.as_mut().map(|many| (many, &mut load.many)));
        for (gate, samples) in pair {
            samples.push(gate.measure(self.ticks, connections, plan.span)?);
        }
        Ok(())
    }

    fn alone(&self, plan: &Plan, gate: &mut Subject, connections: u32, alone: &mut Alone) -> Result<(), String> {
        if connections == 1 {
            alone.direct.extend(self.direct.one_by_one(Duration::from_secs(1))?);
            alone.gate.extend(gate.one_by_one(plan.span)?);
        }
        alone.flushes.extend(disk::flushes(&self.scratch, Duration::from_secs(1))?);
        Ok(())
    }
}

/// The gates that are loaded in turns.
struct Gates {
    few: Subject,
    many: Option<Subject>,
    baseline: Option<Subject>,
}

impl Gates {
    fn load_all(&mut self, ticks: Ticks, span: Duration) -> Result<(), String> {
        for gate in [Some(&mut self.few), self.many.as_mut(), self.baseline.as_mut()].into_iter().flatten() {
            gate.measure(ticks, 64, span)?;
        }
        Ok(())
    }

    /// The minimum number of calls that each of them has completed.
    fn answered(&self) -> u64 {
        let all = [Some(&self.few), self.many.as_ref(), self.baseline.as_ref()];
        all.into_iter().flatten().map(Subject::answered).min().unwrap_or(0)
    }

    fn finish(self) -> Result<Footprints, String> {
        Ok(Footprints {
            few: self.few.finish()?,
            many: self.many.map(Subject::finish).transpose()?,
            baseline: self.baseline.map(Subject::finish).transpose()?,
        })
    }
}
