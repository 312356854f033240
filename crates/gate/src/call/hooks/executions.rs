//! Which tool an execution is of: a runtime names it when it asks about the request, and not again when it asks about the
//! result. Remembered for a while, and only by the gate that was asked.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_model::principal::{PrincipalId, TenantId};

use crate::catalog::Tool;
use crate::identify::Caller;

/// The most executions that are remembered; then the oldest are forgotten.
const MOST: usize = 20_000;

type Key = (TenantId, PrincipalId, String);

/// What is known of an execution.
#[derive(Clone)]
pub(super) struct Remembered {
    /// Its tool.
    pub(super) tool: Arc<Tool>,
    /// Whether the gate governs that.
    pub(super) governed: bool,
}

/// Executions that runtimes asked about.
#[derive(Default)]
pub(crate) struct Executions(Mutex<Known>);

#[derive(Default)]
struct Known {
    tools: HashMap<Key, Remembered>,
    order: VecDeque<Key>,
}

impl Executions {
    /// Remembers the tool of an execution.
    pub(super) fn remember(&self, caller: &Caller, agent: &PrincipalId, execution: &str, known: Remembered) {
        let key = (caller.tenant().clone(), agent.clone(), execution.to_owned());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.tools.insert(key.clone(), known).is_none() {
            all.order.push_back(key);
        }
        while all.order.len() > MOST {
            if let Some(oldest) = all.order.pop_front() {
                all.tools.remove(&oldest);
            }
        }
    }

    /// The tool of an execution.
    pub(super) fn find(&self, caller: &Caller, agent: &PrincipalId, execution: &str) -> Option<Remembered> {
        let key = (caller.tenant().clone(), agent.clone(), execution.to_owned());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tools.get(&key).cloned()
    }
}
