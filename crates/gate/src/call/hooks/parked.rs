//! Questions that were answered with an approval to wait for. The same question again gets the same approval, and what
//! came of it once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use toolgate_model::canonical::to_canonical;
use toolgate_model::guard::Content;
use toolgate_model::id::ApprovalId;
use toolgate_model::merkle::{Hash, sha256};
use toolgate_model::time::Timestamp;

use super::{HookAnswer, HookQuestion};
use crate::identify::Caller;

/// How long an answer is kept for whoever asks again.
const KEPT: Duration = Duration::from_secs(600);
/// The most questions that are kept; more are not remembered, and ask a person again.
const MOST: usize = 10_000;

/// How far a question has come.
pub(super) enum State {
    /// A person is asked.
    Waiting(ApprovalId),
    /// This came of it; told once.
    Answered(Box<HookAnswer>),
}

/// Questions that wait for a person, and those that did.
#[derive(Default)]
pub(crate) struct Parked(Mutex<HashMap<Hash, (State, Timestamp)>>);

/// What makes two questions the same.
pub(super) fn key(caller: &Caller, question: &HookQuestion, content: &Content<'_>) -> Hash {
    let event = &question.event;
    let same = json!({
        "tenant": caller.tenant(), "actor": caller.id(), "agent": question.agent, "hook": event.hook.as_str(),
        "tool": event.tool, "session": event.session, "method": event.method, "content": content.digest(),
    });
    sha256(&to_canonical(&same))
}

impl Parked {
    /// How far this question has come. An answer is taken out with this.
    pub(super) fn look(&self, key: &Hash, now: Timestamp) -> Option<State> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get(key)? {
            (State::Waiting(approval), _) => Some(State::Waiting(*approval)),
            (State::Answered(_), until) if *until <= now => {
                all.remove(key);
                None
            }
            (State::Answered(_), _) => all.remove(key).map(|(state, _)| state),
        }
    }

    /// A person is asked.
    pub(super) fn wait(&self, key: Hash, approval: ApprovalId, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.retain(|_, (state, until)| matches!(state, State::Waiting(_)) || *until > now);
        }
        if all.len() < MOST {
            all.insert(key, (State::Waiting(approval), now));
        }
    }

    /// This came of it; `None` where nothing did.
    pub(super) fn answer(&self, key: &Hash, answer: Option<&HookAnswer>, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let was_waiting = all.remove(key).is_some();
        if let (true, Some(answer)) = (was_waiting, answer) {
            all.insert(*key, (State::Answered(Box::new(answer.clone())), now.plus(KEPT)));
        }
    }
}
