//! The event that stands for many refused calls.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::principal::PrincipalId;
use crate::time::Timestamp;

/// Refused calls of a principal beyond those that are recorded one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDenials {
    /// Who called.
    pub principal: PrincipalId,
    /// How many calls, by the code of their refusal.
    pub codes: BTreeMap<String, u64>,
    /// When the first of them was refused.
    pub first: Timestamp,
    /// When the last of them was.
    pub last: Timestamp,
}

impl ToolDenials {
    /// How many calls.
    pub fn count(&self) -> u64 {
        self.codes.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    pub(super) fn data(&self) -> Value {
        json!({
            "principal_id": self.principal, "count": self.count(), "codes": self.codes, "first_at": self.first,
            "last_at": self.last,
        })
    }
}
