//! `cargo xtask bench`: the benchmarks, in a release build, on stores that wait for the disk as production does.

use std::process::ExitCode;

use self::options::Options;

mod authority;
mod counts;
mod figures;
mod gate;
mod guard;
mod mcp;
mod options;
mod table;

const USAGE: &str = "\
Usage: cargo xtask bench [NAME]

Benchmarks; without a name authority, gate, guard and mcp run:
  authority [PART...]  grants looked up, delegated and revoked, durable events, the catalog, an
                       idle gate. Parts: lookup, cascade, events, catalog, idle
  gate [OPTION...]     calls through the gate, beside the same calls made directly: throughput, CPU,
                       latency, memory and bytes on disk
  guard [PART...]      decisions of policies, external guardians, calls with and without policies.
                       Parts: verdict, remote, calls
  mcp [OPTION...]      MCP calls through the gate, beside the same calls made directly and through nginx:
                       throughput, CPU, latency, lists, memory of sessions, processes
  counts [OPTION...]   instructions and allocations of a call, counted by valgrind
  check [OPTION...]    fails where counts are more than 5 % above xtask/bench-counts.txt

Options of gate and mcp:
  --baseline PATH      compare with this binary, for example that of the previous release, in
                       alternation in the same run
  --engine NAME        only sqlite or only postgresql
  --quick              short rounds, and only what two builds are compared by: under three minutes; mcp
                       only on SQLite, unless --engine says otherwise

Options of gate, mcp, counts and check:
  --binary PATH        measure this binary instead of the release build

Options of counts:
  --profile DIRECTORY  keep a profile for each number of connections, for callgrind_annotate
  --update             write the figures to xtask/bench-counts.txt
";

/// Runs the benchmark that `arguments` name, or all.
pub fn run(arguments: &[String]) -> ExitCode {
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let run_all = || {
        let all = Options::default();
        options::build()
            .and_then(|()| authority::run(&[]))
            .and_then(|()| gate::run(&all))
            .and_then(|()| guard::run(&[]))
            .and_then(|()| mcp::run(&all))
    };
    let with_options = |benchmark: fn(&Options) -> Result<(), String>, allowed: &[&str], arguments: &[&str]| {
        Options::parse(allowed, arguments).and_then(|options| benchmark(&options))
    };
    let outcome = match names.as_slice() {
        [] => run_all(),
        ["authority", parts @ ..] => options::build().and_then(|()| authority::run(parts)),
        ["gate", options @ ..] => with_options(gate::run, &["--baseline", "--binary", "--engine", "--quick"], options),
        ["guard", parts @ ..] => guard::run(parts),
        ["mcp", options @ ..] => with_options(mcp::run, &["--baseline", "--binary", "--engine", "--quick"], options),
        // What a gate starts as the process of a mount.
        [mcp::process::COMMAND] => mcp::process::serve(),
        ["counts", options @ ..] => with_options(counts::run, &["--binary", "--profile", "--update"], options),
        ["check", options @ ..] => with_options(counts::check, &["--binary"], options),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
