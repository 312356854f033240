//! Turns: calls of one agent whose rules read what it has called and spent pass guard and admission one after the
//! other, once two of them have collided. The admission decides; turns only prevent calls from invalidating each other
//! for ever.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;
use toolgate_model::principal::{PrincipalId, TenantId};

type Name = (TenantId, PrincipalId);

/// Queues by agent.
#[derive(Default)]
pub(crate) struct Turns(Mutex<HashMap<Name, Arc<tokio::sync::Mutex<()>>>>);

/// The turn of a call, until it is dropped.
pub(crate) type Turn = OwnedMutexGuard<()>;

impl Turns {
    pub(crate) async fn take(&self, tenant: &TenantId, agent: &PrincipalId) -> Turn {
        let queue = {
            let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // A queue that only this table references is empty.
            queues.retain(|_, queue| Arc::strong_count(queue) > 1);
            Arc::clone(queues.entry((tenant.clone(), agent.clone())).or_default())
        };
        queue.lock_owned().await
    }
}
