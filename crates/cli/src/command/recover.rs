//! The arguments of `toolgate recover`.

use clap::Args;

use super::serve::ServeFlags;

/// Create a new key for the administrator if all keys are lost
///
/// Has the options of `serve`, and opens the same ledger. An embedded ledger can be opened by one process only: stop the gate
/// first. The new key is shown once, and its creation is recorded in the audit log.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate recover --data /var/lib/toolgate")]
pub struct Recover {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub flags: ServeFlags,
}
