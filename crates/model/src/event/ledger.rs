//! The ledger itself.

use serde::{Deserialize, Serialize};

use crate::merkle::Hash;
use crate::principal::TenantId;

/// An operator accepted a ledger that was rolled back behind a signed head. All members are absent if the file of known
/// heads was damaged, those of `found` also if the ledger has no such log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRollbackAccepted {
    pub found_root: Option<Hash>,
    pub found_size: Option<u64>,
    pub known_root: Option<Hash>,
    pub known_size: Option<u64>,
    pub tenant_id: Option<TenantId>,
}
