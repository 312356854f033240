//! Turns: calls of one agent that are judged by how much it has called and spent go one after the other through judgement
//! and admission, once two of them have met. The admission decides; turns only keep calls from outpacing each other for ever.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;
use toolgate_model::principal::{PrincipalId, TenantId};

type Name = (TenantId, PrincipalId);

/// Whose turn it is, by agent.
#[derive(Default)]
pub(crate) struct Turns(Mutex<HashMap<Name, Arc<tokio::sync::Mutex<()>>>>);

/// A call's turn, until it is dropped.
pub(crate) type Turn = OwnedMutexGuard<()>;

impl Turns {
    /// Waits for the turn of a call of this agent.
    pub(crate) async fn take(&self, tenant: &TenantId, agent: &PrincipalId) -> Turn {
        let queue = {
            let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // A queue that only this table holds has nobody in it.
            queues.retain(|_, queue| Arc::strong_count(queue) > 1);
            Arc::clone(queues.entry((tenant.clone(), agent.clone())).or_default())
        };
        queue.lock_owned().await
    }
}
