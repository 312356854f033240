//! The arguments of `toolgate demo`.

use clap::Args;

/// Show what the gate does in one minute, without leaving anything behind
///
/// Starts a gate on a temporary ledger and a small payments service, both on loopback, and shows an allowed call, refusals, a
/// rate limit, a delegation and its revocation, and the verification of the log. Fails if a result is not as expected.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate demo --keep")]
pub struct Demo {
    /// Keep both running until Ctrl-C, and print their addresses and keys
    #[arg(long)]
    pub keep: bool,
}
