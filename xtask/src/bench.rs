//! `cargo xtask bench`: the benchmarks, in a release build, on stores that wait for the disk as production does.

use std::process::ExitCode;

use crate::process::{cargo, run as run_program};

mod authority;
mod gate;
mod guard;

const USAGE: &str = "\
Usage: cargo xtask bench [NAME]

Benchmarks; without a name all of them run:
  authority [PART...]  grants looked up, delegated and revoked, durable events, the catalog, an
                       idle gate. Parts: lookup, cascade, events, catalog, idle
  gate                 the path of a call, beside the same calls made directly
  guard [PART...]      verdicts of policies, guardians of others, calls with and without policies.
                       Parts: verdict, remote, calls
";

/// Runs the benchmark that `arguments` name, or all.
pub fn run(arguments: &[String]) -> ExitCode {
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match names.as_slice() {
        [] => build().and_then(|()| authority::run(&[])).and_then(|()| gate::run()).and_then(|()| guard::run(&[])),
        ["authority", parts @ ..] => build().and_then(|()| authority::run(parts)),
        ["gate"] => build().and_then(|()| gate::run()),
        ["guard", parts @ ..] => guard::run(parts),
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

fn build() -> Result<(), String> {
    run_program(&mut cargo(&["build", "--release", "--package", "toolgate"]))
}
