//! Hook requests that were denied with a pending approval. The same request again gets the same approval, and its
//! decision once. Nothing waits in the meantime: a repeated request contains the content again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use toolgate_model::approval::Approval;
use toolgate_model::canonical::to_canonical;
use toolgate_model::id::ApprovalId;
use toolgate_model::merkle::{Hash, sha256};
use toolgate_model::time::Timestamp;

use super::HookQuestion;
use crate::identify::Caller;

/// How long after its end the decision of an approval can be used by a repeated request.
const KEPT: Duration = Duration::from_secs(600);
/// The maximum number of parked requests; further ones are not kept, and a repeated request asks an approver again.
const MOST: usize = 10_000;

/// The approvals of requests that were denied for now, each until it can no longer be used.
#[derive(Default)]
pub(crate) struct Parked(Mutex<HashMap<Hash, (ApprovalId, Timestamp)>>);

/// The digest by which two hook requests are the same.
pub(super) fn key(caller: &Caller, question: &HookQuestion) -> Hash {
    let event = &question.event;
    let same = json!({
        "tenant": caller.tenant(), "actor": caller.id(), "agent": question.agent, "hook": event.hook.as_str(),
        "tool": event.tool, "session": event.session, "method": event.method, "content": event.content.digest(),
    });
    sha256(&to_canonical(&same))
}

/// Whether the decision of an approval can still be used.
pub(super) fn is_fresh(approval: &Approval, now: Timestamp) -> bool {
    approval.resolved_at.is_some_and(|resolved| resolved.plus(KEPT) > now)
}

impl Parked {
    /// The approval that this request waits for.
    pub(super) fn find(&self, key: &Hash) -> Option<ApprovalId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).map(|(approval, _)| *approval)
    }

    /// The same, removed so that only the first repeated request gets it.
    pub(super) fn take(&self, key: &Hash) -> Option<ApprovalId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key).map(|(approval, _)| approval)
    }

    /// Parks a request with its approval, at most until the approval expires.
    pub(super) fn wait(&self, key: Hash, approval: ApprovalId, expires_at: Timestamp, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.retain(|_, (_, until)| *until > now);
        }
        if all.len() < MOST {
            all.insert(key, (approval, expires_at.plus(KEPT)));
        }
    }
}
