//! `toolgate recover`: a new key for an administrator who lost the token. It works on the ledger itself, not through a
//! gate, so that it needs what only the operator has: the ledger and the key files.

use clap::Args;
use serde_json::json;

use super::Failure;
use super::serve::ServeFlags;
use crate::composition;
use crate::output::Report;

/// Make a new administrator's key when all are lost
///
/// Takes the same options as `serve` and opens the same ledger. An embedded ledger belongs to one process: stop the gate
/// first. The new key is shown once, and its making is in the audit log.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate recover --data /var/lib/toolgate")]
pub(crate) struct Recover {
    /// Print JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    flags: ServeFlags,
}

impl Recover {
    /// Makes the key.
    pub(crate) fn run(self) -> Result<Report, Failure> {
        let configuration = self.flags.load()?.configuration;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::io("the runtime cannot be started", error))?;
        let key = runtime.block_on(composition::recover(&configuration))?;
        let text = format!(
            "A new key of the administrator `admin` of tenant `default`, shown this once only:\n\n    {}\n\n\
             The keys made before still work: revoke those you lost with `toolgate key revoke`.",
            key.expose()
        );
        Ok(Report::new(json!({"agent_id": "admin", "tenant_id": "default", "key": key.expose()}), text))
    }
}
