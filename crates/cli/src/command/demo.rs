//! The arguments of `toolgate demo`.

use clap::Args;

/// See what the gate does, in a minute and leaving nothing behind
///
/// Starts a gate on a temporary store and a small payments service, both on loopback, and walks through an allowed call,
/// refusals, a rate limit, a delegation and its end, and the proof of the log. Fails where anything goes differently than
/// told.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate demo --keep")]
pub struct Demo {
    /// Leave both running afterwards, with their addresses and keys shown, until Ctrl-C
    #[arg(long)]
    pub keep: bool,
}
