//! Questions that were denied with an approval to wait for. The same question again gets the same approval, and what came
//! of it once. Nothing waits for the approval meanwhile: whoever asks again brings the content along.

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

/// How long after its end an approval is good for whoever asks again.
const KEPT: Duration = Duration::from_secs(600);
/// The most questions that are kept; more are not remembered, and ask an approver again.
const MOST: usize = 10_000;

/// The approvals of questions that were denied for now, each until it can be of no more use.
#[derive(Default)]
pub(crate) struct Parked(Mutex<HashMap<Hash, (ApprovalId, Timestamp)>>);

/// What makes two questions the same.
pub(super) fn key(caller: &Caller, question: &HookQuestion) -> Hash {
    let event = &question.event;
    let same = json!({
        "tenant": caller.tenant(), "actor": caller.id(), "agent": question.agent, "hook": event.hook.as_str(),
        "tool": event.tool, "session": event.session, "method": event.method, "content": event.content.digest(),
    });
    sha256(&to_canonical(&same))
}

/// Whether what came of an approval is still told.
pub(super) fn is_fresh(approval: &Approval, now: Timestamp) -> bool {
    approval.resolved_at.is_some_and(|resolved| resolved.plus(KEPT) > now)
}

impl Parked {
    /// The approval that this question waits for.
    pub(super) fn find(&self, key: &Hash) -> Option<ApprovalId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).map(|(approval, _)| *approval)
    }

    /// The same, for the one that asks first; it is forgotten with this.
    pub(super) fn take(&self, key: &Hash) -> Option<ApprovalId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key).map(|(approval, _)| approval)
    }

    /// An approver is asked, until then at the latest.
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
