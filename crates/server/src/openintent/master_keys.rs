//! The status and rotation of master keys.

use toolgate_api::master_keys::{MasterKey, MasterKeys, Rekey, ShowMasterKeys};
use toolgate_gate::maintenance::master_keys::KeyStatus;

use super::error::Denied;
use crate::mount::TypedRequest;

pub(super) async fn status(request: TypedRequest<ShowMasterKeys>) -> Result<MasterKeys, Denied> {
    Ok(reply(request.app.gate.maintenance.key_status(&request.caller).await?))
}

/// Returns at once; the work continues in the background, and `remaining` says how much is left.
pub(super) async fn rekey(request: TypedRequest<Rekey>) -> Result<MasterKeys, Denied> {
    Ok(reply(request.app.gate.maintenance.begin_rekey(&request.caller).await?))
}

fn reply(status: KeyStatus) -> MasterKeys {
    let remaining = status.remaining();
    let keys = status.usage.into_iter().map(|usage| MasterKey {
        current: usage.key == status.current,
        key_id: usage.key.0,
        wraps: usage.wraps,
        retired_at: usage.retired_at,
    });
    MasterKeys { remaining, keys: keys.collect(), current: status.current.0 }
}
