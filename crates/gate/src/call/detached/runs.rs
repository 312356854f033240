//! The detached calls that run in this process, and their followers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use toolgate_model::id::InvocationId;
use toolgate_model::principal::{PrincipalId, TenantId};

use crate::ports::clock::pause;
use crate::ports::ledger::DetachedState;

/// The maximum number of detached calls of one agent that run concurrently in a process. Others wait.
const AT_A_TIME: usize = 8;
/// The delay before a call that could not run is retried: the ledger or the key provider was unavailable.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The running calls and their followers.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<State>);

#[derive(Default)]
struct State {
    running: Mutex<HashMap<InvocationId, ()>>,
    turns: Mutex<HashMap<(TenantId, PrincipalId), Weak<Semaphore>>>,
    followed: Mutex<HashMap<InvocationId, watch::Sender<DetachedState>>>,
    ready: Notify,
}

/// A running call, until it is dropped.
pub(super) struct Run {
    state: Arc<State>,
    id: InvocationId,
}

impl Runs {
    pub(super) fn begin(&self, id: InvocationId) -> Run {
        locked(&self.0.running).insert(id, ());
        Run { state: Arc::clone(&self.0), id }
    }

    pub(super) fn running(&self) -> Vec<InvocationId> {
        locked(&self.0.running).keys().copied().collect()
    }

    /// A turn among the calls of an agent, so that one agent's calls leave room for those of others.
    pub(super) async fn turn(&self, tenant: &TenantId, agent: &PrincipalId) -> Option<OwnedSemaphorePermit> {
        let semaphore = {
            let mut turns = locked(&self.0.turns);
            turns.retain(|_, semaphore| semaphore.strong_count() > 0);
            let name = (tenant.clone(), agent.clone());
            match turns.get(&name).and_then(Weak::upgrade) {
                Some(semaphore) => semaphore,
                None => {
                    let semaphore = Arc::new(Semaphore::new(AT_A_TIME));
                    turns.insert(name, Arc::downgrade(&semaphore));
                    semaphore
                }
            }
        };
        // INVARIANT: never closed.
        semaphore.acquire_owned().await.ok()
    }

    /// Wakes the search for ready calls.
    pub(crate) fn wake(&self) {
        self.0.ready.notify_one();
    }

    /// Completes when calls may be ready.
    pub(super) async fn woken(&self) {
        self.0.ready.notified().await;
    }

    /// Follows a call from its present state.
    pub(super) fn follow(&self, id: InvocationId, state: DetachedState) -> watch::Receiver<DetachedState> {
        let mut followed = locked(&self.0.followed);
        followed.entry(id).or_insert_with(|| watch::Sender::new(state)).subscribe()
    }

    /// The calls that are followed here. Calls without followers are dropped.
    pub(super) fn followed(&self) -> Vec<InvocationId> {
        let mut followed = locked(&self.0.followed);
        followed.retain(|_, sender| sender.receiver_count() > 0);
        followed.keys().copied().collect()
    }

    /// Notifies the followers of a call of its state.
    pub(crate) fn note(&self, id: InvocationId, state: DetachedState) {
        self.0.note(id, state);
    }
}

impl State {
    fn note(&self, id: InvocationId, state: DetachedState) {
        let mut followed = locked(&self.followed);
        if let Some(sender) = followed.get(&id) {
            sender.send_if_modified(|known| std::mem::replace(known, state) != state);
            if sender.receiver_count() == 0 {
                followed.remove(&id);
            }
        }
    }
}

impl Run {
    /// Ends the run: the call has ended, waits, or is retried after a while, here or elsewhere.
    pub(super) async fn end(self, state: DetachedState) {
        if state == DetachedState::Ready {
            pause(RETRY_AFTER).await;
        }
        // A notified follower must find that the call no longer runs.
        locked(&self.state.running).remove(&self.id);
        self.state.note(self.id, state);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        locked(&self.state.running).remove(&self.id);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
