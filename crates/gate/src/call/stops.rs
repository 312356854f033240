//! Calls that are executed while their agent, their tenant or the gate is stopped: they are cut off where their source can
//! be, and settled.

use std::sync::Arc;

use tokio::sync::watch;
use toolgate_model::principal::{PrincipalId, TenantId};

use crate::ports::ledger::{Spending, StoppedBy};
use crate::refusal::Refusal;

/// Wakes calls in flight when something may have been stopped.
#[derive(Clone)]
pub(crate) struct Stops {
    spending: Arc<dyn Spending>,
    /// The state of the limits of all tenants that was seen last.
    seen: Arc<watch::Sender<u64>>,
}

impl Stops {
    pub(crate) fn new(spending: Arc<dyn Spending>) -> Self {
        Self { spending, seen: Arc::new(watch::Sender::new(0)) }
    }

    /// Lets every call in flight look whether it is stopped.
    pub(crate) fn look(&self) {
        self.seen.send_modify(|_| {});
    }

    /// The same, if another process has stopped or resumed something.
    pub(crate) async fn look_if_changed(&self) -> Result<(), Refusal> {
        let state = self.spending.limits_state().await?;
        self.seen.send_if_modified(|seen| std::mem::replace(seen, state) != state);
        Ok(())
    }

    /// Whether calls of this agent are stopped, according to the newest state.
    pub(crate) async fn stopped(&self, tenant: &TenantId, agent: &PrincipalId) -> Option<StoppedBy> {
        self.spending.stopped(tenant, agent).await.ok().flatten()
    }

    /// Completes when calls of this agent are stopped.
    pub(crate) async fn wait(&self, tenant: &TenantId, agent: &PrincipalId) -> StoppedBy {
        let mut seen = self.seen.subscribe();
        loop {
            if seen.changed().await.is_err() {
                // INVARIANT: the sender lives as long as this.
                std::future::pending::<()>().await;
            }
            if let Some(stopped) = self.stopped(tenant, agent).await {
                return stopped;
            }
        }
    }
}
