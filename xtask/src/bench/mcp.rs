//! `cargo xtask bench mcp`: the cost of the gate for an MCP call. wrk calls a tool of an MCP server directly, through nginx
//! as a plain proxy and through the gate, in alternation and in one run, in both eras, with everything on that the
//! benchmark of HTTP calls has on; that call, and one to a server that is a process, are measured beside. A call that fails,
//! or one that is not in the ledger, fails the run; a missed target does not.

use std::path::PathBuf;
use std::time::Duration;

use self::gate::{McpGate, Setup};
use self::message::Era;
use self::report::{EraLoad, GateCalls, Measured};
use self::server::{Proxy, Servers};
use super::gate::load::Target;
use super::gate::scratch::Scratch;
use super::gate::store::Store;
use super::gate::subject::Sample;
use super::gate::upstream::Upstream;
use super::gate::usage::{self, Ticks};
use super::options::{Engine, Options, build_directory};
use crate::cluster::Durability;
use crate::postgres;

pub mod gate;
pub mod message;
pub mod process;
mod report;
pub mod server;
mod sessions;

const CONNECTIONS: u32 = 32;

struct Plan {
    engine: Engine,
    rounds: usize,
    /// Of a load of the gate; direct calls are loaded for half of it.
    span: Duration,
}

/// Runs on the engines of the options and prints the tables.
pub fn run(options: &Options) -> Result<(), String> {
    crate::programs::install(&["nginx", "wrk", "sqlite3"])?;
    let bench = Bench::start(options)?;
    usage::print_load()?;
    let (rounds, span) = if options.quick { (3, Duration::from_secs(2)) } else { (5, Duration::from_secs(4)) };
    if options.has(Engine::Sqlite) {
        let store = |name: &str| Ok(Store::sqlite(&bench.scratch.path().join(name)));
        bench.measure(&Plan { engine: Engine::Sqlite, rounds, span }, store)?.print();
    }
    // A quick run takes the engine that calls are cheaper on, unless `--engine` names another one.
    if options.has(Engine::Postgres) && (options.engine.is_some() || !options.quick) {
        let cluster = postgres::start(Durability::Disk)?;
        let plan = Plan { engine: Engine::Postgres, rounds, span };
        bench.measure(&plan, |name| Store::postgres(&cluster.url(), name))?.print();
        println!("PostgreSQL's own processor time, memory and write-ahead log are not counted.");
    }
    Ok(())
}

struct Bench {
    binary: PathBuf,
    baseline: Option<PathBuf>,
    scratch: Scratch,
    upstream: Upstream,
    servers: Servers,
    proxy: Proxy,
    ticks: Ticks,
}

/// The calls of one era that do not pass the gate.
struct Besides {
    direct: Target,
    proxied: Target,
}

impl Bench {
    fn start(options: &Options) -> Result<Self, String> {
        let binary = options.binary()?;
        let scratch = Scratch::make(&build_directory()?)?;
        let upstream = Upstream::start(&scratch)?;
        let servers = Servers::start(&scratch)?;
        let proxy = Proxy::start(&scratch, &servers)?;
        let baseline = options.baseline.clone();
        Ok(Self { binary, baseline, scratch, upstream, servers, proxy, ticks: Ticks::ask()? })
    }

    fn measure(&self, plan: &Plan, store: impl Fn(&str) -> Result<Store, String>) -> Result<Measured, String> {
        let engine = plan.engine.name();
        let start = |setup: Setup<'_>| {
            println!("preparing a gate on {engine} with mounted servers: {}", setup.name);
            setup.start(store(setup.name)?, &[setup.binary.into()])
        };
        let Self { scratch, upstream, servers, .. } = self;
        let name = |kind: &str| format!("mcp_{}_{kind}", engine.to_lowercase());
        let (own, other) = (name("gate"), name("baseline"));
        let setup = Setup { binary: &self.binary, scratch, upstream, servers, name: &own };
        let mut gate = start(setup)?;
        let of_baseline = self.baseline.as_deref().map(|binary| Setup { binary, name: &other, ..setup });
        let mut baseline = of_baseline.map(start).transpose()?;
        println!("opening {} sessions", sessions::COUNT);
        let sessions = sessions::measure(&gate.subject)?;
        let lists = setup.list(&gate.subject)?.one_by_one(Duration::from_secs(2))?;
        let besides: Vec<Besides> = Era::ALL.into_iter().map(|era| self.besides(era)).collect::<Result<_, _>>()?;
        let warm_up = Plan { rounds: 1, span: Duration::from_secs(1), ..*plan };
        let mut rounds = |plan: &Plan| self.rounds(plan, &besides, &mut gate, baseline.as_mut());
        rounds(&warm_up)?;
        println!("{} rounds with {CONNECTIONS} connections", plan.rounds);
        let (eras, calls, of_baseline) = rounds(plan)?;
        let footprint = gate.subject.finish()?;
        baseline.map(|baseline| baseline.subject.finish()).transpose()?;
        Ok(Measured { engine: plan.engine, eras, calls, baseline: of_baseline, lists, sessions, footprint })
    }

    fn besides(&self, era: Era) -> Result<Besides, String> {
        let target = |place: &str, url: String| {
            let request = era.call(&url, "echo", None);
            Target::new(&self.scratch, &format!("{place}-{}", era.name()), &request)
        };
        Ok(Besides {
            direct: target("direct", self.servers.url(era))?,
            proxied: target("proxied", self.proxy.url(era))?,
        })
    }

    /// Everything in turns, so that other load on the machine affects all alike. This build and the baseline take turns in
    /// coming first.
    fn rounds(
        &self,
        plan: &Plan,
        besides: &[Besides],
        gate: &mut McpGate,
        mut baseline: Option<&mut McpGate>,
    ) -> Result<(Vec<EraLoad>, GateCalls, Option<GateCalls>), String> {
        // wrk takes whole seconds.
        let beside = (plan.span / 2).max(Duration::from_secs(1));
        let mut eras: Vec<EraLoad> = Era::ALL.into_iter().map(EraLoad::new).collect();
        let mut calls = GateCalls::default();
        let mut of_baseline = baseline.is_some().then(GateCalls::default);
        for round in 0..plan.rounds {
            for (load, besides) in eras.iter_mut().zip(besides) {
                let direct = besides.direct.load(CONNECTIONS, beside)?;
                load.direct.push(Sample { figures: direct, processor: 0.0 });
                load.proxied.push(self.through_proxy(&besides.proxied, beside)?);
            }
            let mut pair = vec![(&mut *gate, &mut calls)];
            pair.extend(baseline.as_deref_mut().zip(of_baseline.as_mut()));
            if round % 2 == 1 {
                pair.reverse();
            }
            for (gate, calls) in pair {
                self.load_gate(plan, gate, calls)?;
            }
        }
        Ok((eras, calls, of_baseline))
    }

    fn through_proxy(&self, target: &Target, span: Duration) -> Result<Sample, String> {
        let process = self.proxy.process();
        let before = self.ticks.processor_time(process)?;
        let figures = target.load(CONNECTIONS, span)?;
        let used = self.ticks.processor_time(process)? - before;
        Ok(Sample { figures, processor: used / figures.calls as f64 })
    }

    fn load_gate(&self, plan: &Plan, gate: &mut McpGate, calls: &mut GateCalls) -> Result<(), String> {
        let McpGate { subject, calls: [(_, modern), (_, legacy)], process, .. } = gate;
        let http = subject.target();
        let loads = [
            (&*http, &mut calls.http),
            (&*modern, &mut calls.modern),
            (&*legacy, &mut calls.legacy),
            (&*process, &mut calls.process),
        ];
        for (target, samples) in loads {
            samples.push(subject.measure_calls(target, self.ticks, CONNECTIONS, plan.span)?);
        }
        Ok(())
    }
}
