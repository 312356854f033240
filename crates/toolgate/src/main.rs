//! Toolgate: one binary, a gateway between AI agents and the tools they use.
//!
//! This crate owns the configuration, the composition of a gate, its background tasks and telemetry, and the commands that
//! run a gate in this process. The command line itself is `toolgate-cli`; decisions are made in `toolgate-gate`.

use std::process::ExitCode;

use toolgate_cli::{CommandLine, output};

mod audit_key;
mod command;
mod composition;
mod configuration;
mod conformance_source;
mod descriptors;
mod heads_file;
mod links;
mod logging;
mod maintenance;
mod telemetry;
mod watched_clock;
mod webhooks;
mod workspace_source;

/// A call makes many small allocations on several threads; this allocator takes about half the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit status: 0 success, 1 refused or failed, 2 invalid usage.
fn main() -> ExitCode {
    // For workspace commands, this program applies the sandbox to itself and then executes the shell.
    let mut words = std::env::args_os().skip(1).peekable();
    if words.peek().is_some_and(|word| word == toolgate_workspace::CONFINE_WORD) {
        let Err(error) = toolgate_workspace::confine_and_exec(words.skip(1));
        output::say(&format!("toolgate: {error}"));
        return ExitCode::from(126);
    }
    CommandLine::read().run(&command::Gates)
}
