//! `toolgate recover`: a new key for an administrator who lost the token. It works on the ledger itself, not through a
//! gate, so that it needs what only the operator has: the ledger and the key files.

use serde_json::json;
use toolgate_cli::output::Report;
use toolgate_cli::{Failure, Recover};

use super::serve;
use crate::composition;

pub(super) fn recover(command: Recover) -> Result<Report, Failure> {
    let configuration = serve::load(command.flags)?.configuration;
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
