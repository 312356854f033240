//! Leases: exclusive access to a scope of an intent, for a time.

use super::text_choice::choices;
use crate::id::{IntentId, LeaseId, TaskId};
use crate::principal::{PrincipalId, TenantId};
use crate::time::Timestamp;

choices! {
    LeaseStatus {
        Active = "active",
        Released = "released",
        Expired = "expired",
        /// Ended because the task or the intent ended, or by another principal than its holder.
        Revoked = "revoked",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub id: LeaseId,
    pub tenant: TenantId,
    pub intent: IntentId,
    pub agent: PrincipalId,
    pub scope: String,
    /// The task that it is for.
    pub task: Option<TaskId>,
    pub status: LeaseStatus,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// What the text of a scope names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseScope {
    /// A task: its id, or `task:` and its id.
    Task(TaskId),
    /// Whatever the agents agree on.
    Free,
}

impl LeaseScope {
    pub fn of(scope: &str) -> Self {
        let id = scope.strip_prefix("task:").unwrap_or(scope);
        TaskId::parse(id).map_or(Self::Free, Self::Task)
    }
}

impl Lease {
    /// The status at this time, whether or not the expiry has been recorded.
    pub fn status_at(&self, now: Timestamp) -> LeaseStatus {
        match self.status {
            LeaseStatus::Active if self.expires_at <= now => LeaseStatus::Expired,
            status => status,
        }
    }
}
