//! Calls that are executed while their agent, their tenant or the gate is stopped: they are cut off where their source can
//! be, and settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::Call;
use crate::ports::ledger::{Spending, StoppedBy};
use crate::refusal::Refusal;

/// Wakes calls in flight when something may have been stopped.
#[derive(Clone)]
pub(crate) struct Stops {
    spending: Arc<dyn Spending>,
    /// The state of the limits of all tenants that was seen last.
    seen: Arc<watch::Sender<u64>>,
    /// Whether a call in flight could not learn whether it is stopped, and has to look again.
    unknown: Arc<AtomicBool>,
}

impl Stops {
    pub(crate) fn new(spending: Arc<dyn Spending>) -> Self {
        Self { spending, seen: Arc::new(watch::Sender::new(0)), unknown: Arc::default() }
    }

    /// Lets every call in flight look whether it is stopped.
    pub(crate) fn look(&self) {
        self.seen.send_modify(|_| {});
    }

    /// The same, if another process has stopped or resumed something, or if a call could not learn it before.
    pub(crate) async fn look_if_changed(&self) -> Result<(), Refusal> {
        let state = self.spending.limits_state().await?;
        let again = self.unknown.swap(false, Ordering::AcqRel);
        self.seen.send_if_modified(|seen| std::mem::replace(seen, state) != state || again);
        Ok(())
    }

    /// Whether this call is stopped, according to the newest state: its agent, or the caller that acts for it.
    pub(crate) async fn stopped(&self, call: &Call) -> Result<Option<StoppedBy>, Refusal> {
        let (tenant, caller) = (call.caller.tenant(), call.caller.id());
        let stopped = self.spending.stopped(tenant, &call.agent).await?;
        if stopped.is_some() || call.agent == *caller {
            return Ok(stopped);
        }
        self.spending.stopped(tenant, caller).await
    }

    /// Completes when this call is stopped.
    pub(crate) async fn wait(&self, call: &Call) -> StoppedBy {
        let mut seen = self.seen.subscribe();
        loop {
            if seen.changed().await.is_err() {
                // INVARIANT: the sender lives as long as this.
                std::future::pending::<()>().await;
            }
            match self.stopped(call).await {
                Ok(Some(stopped)) => return stopped,
                Ok(None) => {}
                Err(_) => self.unknown.store(true, Ordering::Release),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use serde_json::json;
    use toolgate_model::principal::{PrincipalId, Tenant, TenantId};
    use toolgate_model::spending::{Stop, StopScope};
    use toolgate_model::time::Timestamp;

    use super::*;
    use crate::call::testing::{Bench, now};
    use crate::ports::ledger::{BudgetUse, Page, PageRequest, SetTenantBudget, StopCalls, StopOutcome};
    use crate::refusal::Code;

    /// A ledger whose reads fail while it is down, and in which these principals are stopped.
    #[derive(Default)]
    struct Stopped {
        down: AtomicBool,
        principals: Mutex<Vec<PrincipalId>>,
    }

    fn unused<T>() -> Result<T, Refusal> {
        Err(Refusal::new(Code::Internal, "not used"))
    }

    #[async_trait]
    impl Spending for Stopped {
        async fn set_tenant_budget(&self, _: SetTenantBudget) -> Result<Tenant, Refusal> {
            unused()
        }

        async fn stop_calls(&self, _: StopCalls) -> Result<StopOutcome, Refusal> {
            unused()
        }

        async fn stopped(&self, _: &TenantId, agent: &PrincipalId) -> Result<Option<StoppedBy>, Refusal> {
            if self.down.load(Ordering::SeqCst) {
                return unused();
            }
            let stop = Stop { at: now(), by: agent.clone(), reason: None };
            let is_stopped = self.principals.lock().unwrap().contains(agent);
            Ok(is_stopped.then(|| StoppedBy { scope: StopScope::Agent(agent.clone()), stop }))
        }

        async fn limits_state(&self) -> Result<u64, Refusal> {
            Ok(0)
        }

        async fn budgets(
            &self,
            _: &TenantId,
            _: Option<&PrincipalId>,
            _: Timestamp,
            _: PageRequest,
        ) -> Result<Page<BudgetUse>, Refusal> {
            unused()
        }
    }

    #[tokio::test]
    async fn a_call_that_could_not_learn_that_it_is_stopped_looks_again() {
        let call = Bench::with_grant().call("crm.read", json!({"id": "7"}));
        let ledger = Arc::new(Stopped::default());
        ledger.principals.lock().unwrap().push(call.agent.clone());
        ledger.down.store(true, Ordering::SeqCst);
        let stops = Stops::new(ledger.clone());
        let wait = stops.wait(&call);
        tokio::pin!(wait);
        assert!(futures_util::poll!(&mut wait).is_pending());
        stops.look();
        assert!(futures_util::poll!(&mut wait).is_pending());
        // The state has not changed since, and the call asks again all the same.
        ledger.down.store(false, Ordering::SeqCst);
        stops.look_if_changed().await.unwrap();
        assert!(futures_util::poll!(&mut wait).is_ready());
    }

    #[tokio::test]
    async fn a_call_is_stopped_with_the_caller_that_acts_for_its_agent() {
        let call = Bench::with_grant().call("crm.read", json!({"id": "7"}));
        let acting = Call { agent: PrincipalId::parse("another").unwrap(), ..call.clone() };
        let ledger = Arc::new(Stopped::default());
        ledger.principals.lock().unwrap().push(call.caller.id().clone());
        let stops = Stops::new(ledger);
        assert!(stops.stopped(&acting).await.unwrap().is_some());
    }
}
