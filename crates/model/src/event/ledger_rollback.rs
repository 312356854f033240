//! A ledger that went back, and that an operator accepted.

use serde_json::{Value, json};

use crate::merkle::Hash;
use crate::principal::TenantId;

/// What was known of a log, and what the ledger has of it instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRollback {
    /// The tenant whose log it is; none where nothing could be known because the file of the heads was damaged.
    pub tenant: Option<TenantId>,
    /// Size and root that were signed; none where the file of the heads was damaged.
    pub known: Option<(u64, Hash)>,
    /// Size and root in the ledger; none where it has no such log.
    pub found: Option<(u64, Hash)>,
}

impl LedgerRollback {
    pub(super) fn data(&self) -> Value {
        let size = |head: &Option<(u64, Hash)>| head.map(|(size, _)| size);
        let root = |head: &Option<(u64, Hash)>| head.map(|(_, root)| root.to_string());
        json!({
            "tenant_id": self.tenant, "known_size": size(&self.known), "known_root": root(&self.known),
            "found_size": size(&self.found), "found_root": root(&self.found),
        })
    }
}
