//! Work that is long enough to delay other calls, such as redacting a large response: done on its own threads, a few at
//! a time and one at a time per agent, so that no agent can occupy all processors or memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use toolgate_model::principal::{PrincipalId, TenantId};

/// The number of concurrent jobs.
const AT_A_TIME: usize = 2;

/// Why work brought nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    Deadline,
    Broken,
}

pub(crate) struct Offload {
    all: Arc<Semaphore>,
    of_agents: Mutex<HashMap<(TenantId, PrincipalId), Weak<Semaphore>>>,
}

impl Offload {
    pub(crate) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(AT_A_TIME)), of_agents: Mutex::default() }
    }

    /// Runs work for an agent; the caller waits at most until the deadline. A thread cannot be stopped, but its time is
    /// proportional to its input, and it keeps its slot until it has ended.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        agent: (&TenantId, &PrincipalId),
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Late> {
        let working = async {
            let of_agent = place(self.of_agent(agent)).await?;
            let of_all = place(Arc::clone(&self.all)).await?;
            let work = move || {
                let _places = (of_agent, of_all);
                work()
            };
            tokio::task::spawn_blocking(work).await.map_err(|_| Late::Broken)
        };
        timeout_at(deadline, working).await.unwrap_or(Err(Late::Deadline))
    }

    fn of_agent(&self, (tenant, agent): (&TenantId, &PrincipalId)) -> Arc<Semaphore> {
        let mut of_agents = self.of_agents.lock().unwrap_or_else(PoisonError::into_inner);
        of_agents.retain(|_, places| places.strong_count() > 0);
        let name = (tenant.clone(), agent.clone());
        if let Some(places) = of_agents.get(&name).and_then(Weak::upgrade) {
            return places;
        }
        let places = Arc::new(Semaphore::new(1));
        of_agents.insert(name, Arc::downgrade(&places));
        places
    }
}

async fn place(places: Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Late> {
    // INVARIANT: never closed.
    places.acquire_owned().await.map_err(|_| Late::Broken)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use super::*;
    use crate::time::{deadline_after, now};

    const LONG: Duration = Duration::from_secs(60);

    fn agent(name: &str) -> (TenantId, PrincipalId) {
        (TenantId::parse("default").unwrap(), PrincipalId::parse(name).unwrap())
    }

    fn held() -> (Sender<()>, Receiver<()>) {
        channel()
    }

    #[tokio::test]
    async fn nobody_waits_for_work_beyond_the_deadline() {
        let (offload, (tenant, name)) = (Offload::new(), agent("one"));
        let (release, work) = held();
        let late = offload.run((&tenant, &name), now(), move || work.recv()).await;
        assert_eq!(late.unwrap_err(), Late::Deadline);
        drop(release);
        assert_eq!(offload.run((&tenant, &name), deadline_after(LONG), || 7).await, Ok(7));
    }

    #[tokio::test]
    async fn an_agent_that_keeps_its_place_leaves_one_for_others() {
        let offload = Arc::new(Offload::new());
        let ((tenant, one), (_, other)) = (agent("one"), agent("other"));
        let (release, work) = held();
        let held_grant = {
            let (offload, tenant, one) = (Arc::clone(&offload), tenant.clone(), one.clone());
            tokio::spawn(async move { offload.run((&tenant, &one), deadline_after(LONG), move || work.recv()).await })
        };
        while offload.all.available_permits() == AT_A_TIME {
            tokio::task::yield_now().await;
        }

        assert_eq!(offload.run((&tenant, &one), now(), || 1).await, Err(Late::Deadline), "one at a time");
        assert_eq!(offload.run((&tenant, &other), deadline_after(LONG), || 2).await, Ok(2));
        drop(release);
        assert!(held_grant.await.unwrap().is_ok());
    }
}
