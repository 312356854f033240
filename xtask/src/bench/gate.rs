//! `cargo xtask bench gate`: what the gate costs a call. wrk loads nginx directly and through the gate, in turns and in one
//! run, with authorization, schema, constraints, rate, redaction and both durable records on. A call that fails, or one that
//! is not in the ledger, fails the run; a missed target does not.

use std::path::PathBuf;
use std::time::Duration;

use self::load::Target;
use self::report::{Alone, Load, Measured};
use self::scratch::Scratch;
use self::store::Store;
use self::subject::{PARAMETERS, Sample, Subject};
use self::upstream::Upstream;
use self::usage::Ticks;
use crate::cluster::Durability;
use crate::postgres;

mod api;
mod disk;
mod load;
mod one_by_one;
mod programs;
mod report;
mod scratch;
mod store;
mod subject;
mod upstream;
mod usage;

/// Few and many grants in the ledger.
const GRANTS: [u64; 2] = [10, 1_000_000];

/// Memory is read when a gate has answered this many calls.
const CALLS: u64 = 100_000;

const CONNECTIONS: [u32; 2] = [1, 64];

/// How long and how often an engine is loaded.
struct Plan {
    engine: &'static str,
    rounds: usize,
    span: Duration,
    calls: u64,
}

/// Runs on both engines and prints the tables.
pub fn run() -> Result<(), String> {
    crate::programs::install(&["nginx", "wrk", "sqlite3"])?;
    let busy = usage::machine(Duration::from_secs(2))?;
    println!("before the run, {:.0} % of the processors' time is used by others", busy * 100.0);
    let bench = Bench::start()?;
    let plan = Plan { engine: "SQLite", rounds: 5, span: Duration::from_secs(4), calls: CALLS };
    let on_sqlite = bench.measure(&plan, |name| Ok(Store::sqlite(&bench.scratch.path().join(name))))?;
    on_sqlite.print(GRANTS);
    on_sqlite.print_targets();

    let cluster = postgres::start(Durability::Disk)?;
    let plan = Plan { engine: "PostgreSQL", rounds: 3, span: Duration::from_secs(3), calls: 0 };
    let on_postgres = bench.measure(&plan, |name| Store::postgres(&cluster.url(), name))?;
    on_postgres.print(GRANTS);
    println!("PostgreSQL's own processor time and memory are not counted.");
    Ok(())
}

/// What all measurements share.
struct Bench {
    binary: PathBuf,
    scratch: Scratch,
    upstream: Upstream,
    direct: Target,
    ticks: Ticks,
}

impl Bench {
    fn start() -> Result<Self, String> {
        let build = build_directory()?;
        let scratch = Scratch::make(&build)?;
        let upstream = Upstream::start(&scratch)?;
        let url = format!("{}{}", upstream.url(), upstream::PATH);
        let direct = Target::new(&scratch, "direct", url, None, PARAMETERS)?;
        Ok(Self { binary: build.join("release/toolgate"), scratch, upstream, direct, ticks: Ticks::ask()? })
    }

    /// Loads the service, a gate with few grants and one with many in turns, so that what else the machine does falls on
    /// all alike.
    fn measure(&self, plan: &Plan, store: impl Fn(&str) -> Result<Store, String>) -> Result<Measured, String> {
        let prepare = |name: &str, grants: u64| {
            println!("preparing a gate on {} with {grants} grants", plan.engine);
            let name = format!("{}_{name}", plan.engine.to_lowercase());
            Subject::prepare(&self.binary, &self.scratch, &name, store(&name)?, &self.upstream, grants)
        };
        let [mut few, mut many] = [prepare("few", GRANTS[0])?, prepare("many", GRANTS[1])?];
        for subject in [&mut few, &mut many] {
            subject.measure(self.ticks, 64, Duration::from_secs(1))?;
        }
        let mut alone = Alone::default();
        let mut loads = Vec::new();
        for connections in CONNECTIONS {
            println!("{} rounds with {connections} connections", plan.rounds);
            let mut load = Load { connections, direct: Vec::new(), few: Vec::new(), many: Vec::new() };
            for _ in 0..plan.rounds {
                let direct = self.direct.load(connections, Duration::from_secs(2))?;
                load.direct.push(Sample { figures: direct, processor: 0.0 });
                load.few.push(few.measure(self.ticks, connections, plan.span)?);
                load.many.push(many.measure(self.ticks, connections, plan.span)?);
                if connections == 1 {
                    alone.direct.extend(self.direct.one_by_one(Duration::from_secs(1))?);
                    alone.gate.extend(few.one_by_one(plan.span)?);
                }
                alone.flushes.extend(disk::flushes(&self.scratch, Duration::from_secs(1))?);
            }
            loads.push(load);
        }
        while few.answered().min(many.answered()) < plan.calls {
            few.measure(self.ticks, 64, plan.span)?;
            many.measure(self.ticks, 64, plan.span)?;
        }
        let calls = few.answered().min(many.answered());
        let resident = [few.resident()?, many.resident()?];
        few.finish()?;
        many.finish()?;
        Ok(Measured { engine: plan.engine, loads, calls, resident, alone })
    }
}

/// The directory that cargo builds in: this program is in `debug` or another profile's directory below it.
fn build_directory() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    own.ancestors().nth(2).map(PathBuf::from).ok_or_else(|| "this program was not built by cargo".to_owned())
}
