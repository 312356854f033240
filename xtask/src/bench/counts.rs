//! `cargo xtask bench counts` and `cargo xtask bench check`: instructions and allocations of one governed, durably recorded
//! call on SQLite, over HTTP and over MCP, counted by valgrind. On 1 connection they vary by about 1 %; on 16 connections of
//! a busy machine, where batches differ, by up to 5 %.
//!
//! A dense and a sparse load take the same time in one process, and the difference is divided by the difference in calls:
//! start-up and background tasks, which run by the clock, cancel out.

use std::time::{Duration, Instant};

use self::callgrind::Profile;
use self::record::Counts;
use self::valgrind::{Dump, Valgrind};
use super::gate::load::Target;
use super::gate::programs;
use super::gate::scratch::Scratch;
use super::gate::store::Store;
use super::gate::subject::Subject;
use super::gate::upstream::Upstream;
use super::mcp::gate::{McpGate, Setup};
use super::mcp::server::Servers;
use super::options::{Options, build_directory};
use super::table;

mod callgrind;
mod record;
mod valgrind;

/// One caller has a commit for each record; of many, several share one.
const CONNECTIONS: [u32; 2] = [1, 16];

/// Calls before anything is counted: caches, pools and the translated code are warm after them.
const WARM_UP: u32 = 384;
const DENSE: u32 = 960;
const SPARSE: u32 = 192;

/// Background tasks finish a load in this time.
const REST: Duration = Duration::from_secs(3);

/// By how much a figure may be worse than the recorded one.
const TOLERANCE: f64 = 0.05;

/// Counts, prints a table, and with `--update` writes the figures into the repository.
pub fn run(options: &Options) -> Result<(), String> {
    let counts = count(options)?;
    if options.update {
        record::write(&counts)?;
        println!("\nwritten to {}", record::FILE);
    }
    Ok(())
}

/// Counts and fails where a figure is worse than the one in the repository by more than the tolerance.
pub fn check(options: &Options) -> Result<(), String> {
    let recorded = record::read()?;
    let counts = count(options)?;
    let comparison = record::compare(&recorded, &counts, TOLERANCE)?;
    table::print(
        "Beside the figures in the repository",
        &["call", "connections", "", "recorded", "now", "ratio"],
        &comparison.rows,
    );
    if !comparison.regressions.is_empty() {
        return Err(format!(
            "more than {:.0} % above {}: {}; make the call cheaper, or say why it costs more and run \
             `cargo xtask bench counts --update`",
            TOLERANCE * 100.0,
            record::FILE,
            comparison.regressions.join(", ")
        ));
    }
    if comparison.improved {
        println!("\na figure is more than {:.0} % better: run `cargo xtask bench counts --update`", TOLERANCE * 100.0);
    }
    Ok(())
}

fn count(options: &Options) -> Result<Vec<Counts>, String> {
    crate::programs::install(&["nginx", "sqlite3", "valgrind"])?;
    let binary = options.binary()?;
    let scratch = Scratch::make(&build_directory()?)?;
    let (upstream, servers) = (Upstream::start(&scratch)?, Servers::start(&scratch)?);
    let mut counts = Vec::new();
    let mut rows = Vec::new();
    for connections in CONNECTIONS {
        let name = format!("counts_{connections}");
        let store = Store::sqlite(&scratch.path().join(&name));
        let valgrind = Valgrind::below(scratch.path(), &name);
        let setup = Setup { binary: &binary, scratch: &scratch, upstream: &upstream, servers: &servers, name: &name };
        let McpGate { mut subject, calls: [(_, modern), (_, legacy)], process } =
            setup.start(store, &valgrind.command(&binary))?;
        let http = subject.target();
        let calls =
            [("http", &*http), ("mcp-2026-07-28", &modern), ("mcp-2025-11-25", &legacy), ("mcp-process", &process)];
        for (call, target) in calls {
            println!("counting {} calls on {connections} connections: {call}", WARM_UP + DENSE + SPARSE);
            let [dense, sparse] = load(&mut subject, target, &valgrind, connections)?;
            if let Some(directory) = &options.profile {
                dense.keep(directory, &format!("{call}-{connections}.callgrind"))?;
            }
            let (row, counted) = compare(call, connections, &dense, &sparse)?;
            rows.push(row);
            counts.push(counted);
        }
        subject.finish()?;
    }
    let head = [
        "call",
        "connections",
        "instructions",
        "of them SHA-256",
        "allocations",
        "new",
        "grown",
        "of C libraries",
        "flushes",
    ];
    table::print("A governed, recorded call on SQLite, as valgrind counts it", &head, &rows);
    println!("\nvalgrind has no SHA extensions: on a processor that has them, SHA-256 takes about a twentieth.");
    Ok(counts)
}

/// The figures of one call, as a row and for the record.
fn compare(call: &str, connections: u32, dense: &Dump, sparse: &Dump) -> Result<(Vec<String>, Counts), String> {
    let calls = f64::from(DENSE - SPARSE);
    let [dense, sparse] = [dense.profile()?, sparse.profile()?];
    let per_call = |figure: fn(&Profile) -> u64| (figure(&dense) as f64 - figure(&sparse) as f64) / calls;
    let instructions = per_call(|profile| profile.instructions);
    let parts = [
        per_call(|profile| profile.allocated),
        per_call(|profile| profile.reallocated),
        per_call(|profile| profile.of_c),
    ];
    if parts[0] <= 0.0 {
        return Err("no allocation was counted: does the allocator have other function names now?".to_owned());
    }
    let allocations = parts.iter().sum();
    let mut row = vec![call.to_owned(), connections.to_string(), format!("{instructions:.0}")];
    row.push(format!("{:.0}", per_call(|profile| profile.hashing)));
    row.push(format!("{allocations:.1}"));
    row.extend(parts.map(|part| format!("{part:.1}")));
    row.push(format!("{:.2}", per_call(|profile| profile.flushes)));
    Ok((row, Counts { call: call.to_owned(), connections, instructions, allocations }))
}

/// Warms the gate up, loads it densely, then sparsely for the same time.
fn load(subject: &mut Subject, target: &Target, valgrind: &Valgrind, connections: u32) -> Result<[Dump; 2], String> {
    let mut load = |calls: u32, span: Duration| {
        let begun = Instant::now();
        subject.call(target, connections, calls / connections, span)?;
        let span = begun.elapsed();
        programs::pause(REST);
        Ok::<_, String>((valgrind.dump(subject.process())?, span))
    };
    load(WARM_UP, Duration::ZERO)?;
    let (dense, span) = load(DENSE, Duration::ZERO)?;
    let (sparse, _) = load(SPARSE, span)?;
    Ok([dense, sparse])
}
