//! The workspace as the gate uses it: on real files and real processes.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a fixture that fails ends the test, and a test that is skipped says so"
)]

mod bash;
mod escape;
mod files;
mod place;
mod sandbox;
