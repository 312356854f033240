//! The tool of an execution: a runtime names it in the hook request about the call, but not in the one about the
//! result. Kept for a while in this process only, and only for allowed calls, since no other call has a result.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use toolgate_model::principal::{PrincipalId, TenantId};

use super::HookQuestion;
use super::tools::Named;
use crate::identify::Caller;

/// The maximum number of executions; beyond it the oldest are dropped.
const MOST: usize = 20_000;

/// The owner of an execution: an id has a meaning only for the runtime that chose it, within its conversation.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    tenant: TenantId,
    actor: PrincipalId,
    agent: PrincipalId,
    session: Option<String>,
    execution: String,
}

#[derive(Clone)]
pub(super) enum Begun {
    /// A call of this tool.
    One(Named),
    /// Calls of several tools: the id does not identify the tool of a result.
    Several,
}

/// Executions that runtimes asked about.
#[derive(Default)]
pub(crate) struct Executions(Mutex<Known>);

#[derive(Default)]
struct Known {
    begun: HashMap<Key, Begun>,
    order: VecDeque<Key>,
}

impl Executions {
    pub(super) fn remember(&self, caller: &Caller, question: &HookQuestion, named: Named) {
        let Some(key) = key(caller, question) else { return };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.begun.get_mut(&key) {
            Some(Begun::One(before)) if before.is_same(&named) => {}
            Some(before) => *before = Begun::Several,
            None => {
                all.begun.insert(key.clone(), Begun::One(named));
                all.order.push_back(key);
            }
        }
        while all.order.len() > MOST {
            if let Some(oldest) = all.order.pop_front() {
                all.begun.remove(&oldest);
            }
        }
    }

    pub(super) fn find(&self, caller: &Caller, question: &HookQuestion) -> Option<Begun> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).begun.get(&key(caller, question)?).cloned()
    }
}

fn key(caller: &Caller, question: &HookQuestion) -> Option<Key> {
    let event = &question.event;
    Some(Key {
        tenant: caller.tenant().clone(),
        actor: caller.id().clone(),
        agent: question.agent.clone(),
        session: event.session.as_deref().map(str::to_owned),
        execution: event.execution.as_deref()?.to_owned(),
    })
}
