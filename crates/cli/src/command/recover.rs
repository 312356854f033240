//! The arguments of `toolgate recover`.

use clap::Args;

use super::serve::ServeFlags;

/// Make a new administrator's key when all are lost
///
/// Takes the same options as `serve` and opens the same ledger. An embedded ledger belongs to one process: stop the gate
/// first. The new key is shown once, and its making is in the audit log.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate recover --data /var/lib/toolgate")]
pub struct Recover {
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub flags: ServeFlags,
}
