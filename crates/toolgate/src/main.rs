//! Toolgate: one binary, a gateway between AI agents and the tools they use.
//!
//! `toolgate serve`, or no argument at all, runs the gate; every other command calls a running one. This crate contains
//! the command line, the configuration and the wiring; all decisions are made in the gate.

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

/// A call makes many small allocations on several threads, which this allocator serves in about half the time.
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
