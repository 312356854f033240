//! `toolgate recover`: a new key for an administrator who lost the token. It opens the ledger itself, so it requires what only
//! the operator has: the ledger and the key files.

use serde_json::json;
use toolgate_cli::output::Report;
use toolgate_cli::{Failure, Recover};

use super::serve;
use crate::composition;

pub(super) fn recover(command: Recover) -> Result<Report, Failure> {
    let configuration = serve::load(command.flags)?.configuration;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("could not start the async runtime", error))?;
    let key = runtime.block_on(composition::recover(&configuration))?;
    let text = format!(
        "A new key of the administrator `admin` of tenant `default`, which is not shown again:\n\n    {}\n\n\
         Earlier keys are still valid: revoke those that are lost with `toolgate key revoke`.",
        key.expose()
    );
    Ok(Report::new(json!({"agent_id": "admin", "tenant_id": "default", "key": key.expose()}), text))
}
