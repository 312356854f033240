//! The checks and tools of this repository: `cargo xtask` lists them. One file per command; the standard library only,
//! so that it builds in a second on a fresh machine.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool speaks on its terminal")]

use std::process::ExitCode;

mod bench;
#[path = "../../crates/testkit/src/cluster.rs"]
#[expect(dead_code, reason = "stopping and restarting a cluster is for the tests, which share this file")]
mod cluster;
mod debian;
mod deny;
mod faults;
mod node;
mod postgres;
mod process;
mod programs;
mod python;
mod steps;
mod test;
mod test_programs;
mod tidy;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test           everything that must hold: repository conventions, format, lints, all tests, documentation.
                 Installs and prepares what the tests need (PostgreSQL, nginx, Python and npm packages).
  bench [NAME]   the benchmarks, in a release build, on stores that wait for the disk: authority, gate,
                 guard, mcp, or all; counts and check for what a call costs in instructions and allocations.
                 Installs what they need (PostgreSQL, nginx, wrk, valgrind). `bench help` has the options.
  faults         the fault matrix: injects faults into the real binary on both engines, prints a table.
                 Installs what it needs (PostgreSQL, nginx); needs a C compiler, as the build does.
  tidy           the repository conventions alone
  deny           licences, banned crates and sources of the dependencies (deny.toml), with cargo-deny
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let rest: Vec<String> = arguments.collect();
    match (command.as_deref(), rest.as_slice()) {
        (None | Some("help" | "--help" | "-h"), []) => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        (Some("test"), []) => test::run(),
        (Some("bench"), arguments) => bench::run(arguments),
        (Some("faults"), []) => faults::run(),
        (Some("tidy"), []) => tidy::run(),
        (Some("deny"), []) => deny::run(),
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
