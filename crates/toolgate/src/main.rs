//! Toolgate: one binary that stands between AI agents and the tools they use.
//!
//! `toolgate serve`, or no argument at all, runs the gate; every other command speaks to a running one. This room owns the
//! command line, the configuration and the wiring, and refuses everything else: what is decided is decided in the gate.

use std::process::ExitCode;

mod audit_key;
mod client;
mod command;
mod composition;
mod configuration;
mod conformance_source;
mod descriptors;
mod durations;
mod heads_file;
mod hook;
mod links;
mod logging;
mod logins;
mod maintenance;
mod openapi_import;
mod output;
mod private_file;
mod prompt;
mod siem;
mod telemetry;
mod watched_clock;
mod webhooks;
mod workspace_source;

/// A call makes many small allocations on several threads, which this one serves in about half the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// 0 done, 1 refused or failed, 2 bad usage.
fn main() -> ExitCode {
    // This program confines itself before it becomes the shell of a workspace.
    let mut words = std::env::args_os().skip(1).peekable();
    if words.peek().is_some_and(|word| word == toolgate_workspace::CONFINE_WORD) {
        let Err(error) = toolgate_workspace::confine_and_exec(words.skip(1));
        output::say(&format!("toolgate: {error}"));
        return ExitCode::from(126);
    }
    command::CommandLine::read().run()
}
