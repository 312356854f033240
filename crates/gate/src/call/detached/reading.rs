//! Detached calls as their callers see them: how far one has come, what came of it, and taking it back.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use toolgate_model::id::InvocationId;
use toolgate_model::invocation::InvocationStatus;
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;

use super::runs::Runs;
use super::stored::StoredOutcome;
use crate::authority::Administration;
use crate::call::{CallResult, Denial};
use crate::gate::{Ports, Shared};
use crate::identify::Caller;
use crate::ports::clock::pause;
use crate::ports::ledger::{DetachedCall, DetachedCalls, DetachedState, Invocations, Page, PageRequest, StoredCall};
use crate::ports::sealer::Sealer;
use crate::refusal::{Code, Refusal};

/// How long a caller that cancels a call is kept waiting for its end.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// A detached call, as far as it has come.
#[derive(Debug, Clone, PartialEq)]
pub enum DetachedView {
    /// It has not ended.
    Open(Box<DetachedCall>),
    /// It has; this is what the caller would have got on its connection.
    Ended(Box<Result<CallResult, Denial>>),
}

/// Hears of each state that a call comes to.
pub struct Follower(watch::Receiver<DetachedState>);

impl Follower {
    /// Returns once the call has come to another state than when this was asked last.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // INVARIANT: the sender stays while there is a receiver.
            std::future::pending::<()>().await;
        }
    }
}

/// Reads, cancels and deletes detached calls for their callers.
pub struct DetachedReader {
    detached_calls: Arc<dyn DetachedCalls>,
    invocations: Arc<dyn Invocations>,
    sealer: Arc<dyn Sealer>,
    detached_runs: Runs,
    administration: Arc<Administration>,
    kept_for: Duration,
}

impl DetachedReader {
    pub(crate) fn new(ports: &Ports, shared: &Shared, administration: Arc<Administration>) -> Self {
        Self {
            detached_calls: ports.ledger.clone(),
            invocations: ports.ledger.clone(),
            sealer: Arc::clone(&ports.sealer),
            detached_runs: shared.detached_runs.clone(),
            administration,
            kept_for: shared.settings.detached.keep,
        }
    }

    /// How long the outcome of a call is kept at least.
    pub fn kept_for(&self) -> Duration {
        self.kept_for
    }

    /// How far a detached call of the caller's has come, and what came of it.
    pub async fn detached_call(&self, caller: &Caller, id: InvocationId) -> Result<DetachedView, Refusal> {
        let StoredCall { call, outcome } = self.own_detached(caller, id).await?;
        if call.state != DetachedState::Finished {
            return Ok(DetachedView::Open(Box::new(call)));
        }
        let Some(outcome) = outcome else { return Err(self.without_outcome(&call).await?) };
        let material = self.sealer.unseal(&outcome.binding, &outcome.sealed).await?;
        Ok(DetachedView::Ended(Box::new(StoredOutcome::read(&material)?.into_result())))
    }

    /// The same, once it has ended or this much time has passed.
    pub async fn detached_call_within(
        &self,
        caller: &Caller,
        id: InvocationId,
        wait: Duration,
    ) -> Result<DetachedView, Refusal> {
        let mut follower = self.follow_detached(id);
        let timeout = pause(wait);
        tokio::pin!(timeout);
        loop {
            let view = self.detached_call(caller, id).await?;
            if matches!(view, DetachedView::Ended(_)) || wait.is_zero() {
                return Ok(view);
            }
            tokio::select! {
                () = follower.changed() => {}
                () = &mut timeout => return self.detached_call(caller, id).await,
            }
        }
    }

    /// Follows a call. Who may is decided where its state is read.
    pub fn follow_detached(&self, id: InvocationId) -> Follower {
        Follower(self.detached_runs.follow(id, DetachedState::Ready))
    }

    /// The detached calls of the caller, or of everybody for who may read the log; newest first.
    pub async fn detached_calls(
        &self,
        caller: &Caller,
        agent: Option<PrincipalId>,
        page: PageRequest,
    ) -> Result<Page<DetachedCall>, Refusal> {
        let agent = match caller.may(Permission::ReadAudit) {
            true => agent,
            false => match agent.filter(|agent| agent != caller.id()) {
                Some(_) => return Err(caller.require(Permission::ReadAudit).err().unwrap_or_else(hidden)),
                None => Some(caller.id().clone()),
            },
        };
        self.detached_calls.detached_calls(caller.tenant(), agent.as_ref(), page).await
    }

    /// Takes a call back that is not admitted yet. One that is goes on, and one that has ended stays as it ended.
    pub async fn cancel_detached(&self, caller: &Caller, id: InvocationId) -> Result<DetachedView, Refusal> {
        self.own_detached(caller, id).await?;
        let mut follower = self.follow_detached(id);
        self.detached_calls.cancel_detached(caller.tenant(), id).await?;
        self.detached_runs.wake();
        let timeout = pause(CANCEL_WAIT);
        tokio::pin!(timeout);
        loop {
            match self.detached_call(caller, id).await? {
                DetachedView::Open(call) if call.state != DetachedState::Running => {}
                view => return Ok(view),
            }
            tokio::select! {
                () = follower.changed() => {}
                () = &mut timeout => return self.detached_call(caller, id).await,
            }
        }
    }

    /// Forgets what came of a call before its time is over.
    pub async fn forget_detached(&self, caller: &Caller, id: InvocationId) -> Result<(), Refusal> {
        let StoredCall { call, .. } = self.own_detached(caller, id).await?;
        if self.detached_calls.forget_outcome(caller.tenant(), id).await? {
            return Ok(());
        }
        let reason = format!("the call is {}; cancel it instead", call.state.as_str());
        Err(Refusal::new(Code::VersionConflict, reason).with("invocation_id", id))
    }

    /// A call of the caller's own: made by it, or for it. What came of it is nobody else's.
    async fn own_detached(&self, caller: &Caller, id: InvocationId) -> Result<StoredCall, Refusal> {
        let found = self.detached_calls.detached_call(caller.tenant(), id).await?;
        let is_own = |call: &DetachedCall| {
            call.actor == *caller.id() || call.agent == *caller.id() || caller.may(Permission::ActAs)
        };
        if let Some(found) = found.filter(|found| is_own(&found.call)) {
            return Ok(found);
        }
        // Whoever may see the record learns that there is nothing more; everybody else that there is nothing.
        self.administration.invocation(caller, id).await?;
        let reason = "the result of this call is not kept: the call was not detached, or its time is over";
        Err(Refusal::new(Code::ResultGone, reason).with("invocation_id", id))
    }

    /// Why there is nothing to be had of a call that has ended.
    async fn without_outcome(&self, call: &DetachedCall) -> Result<Refusal, Refusal> {
        let record = self.invocations.invocation(&call.tenant, call.id).await?;
        if record.is_some_and(|record| record.status == InvocationStatus::Unknown) {
            let cut_off = Refusal::new(Code::OutcomeUnknown, "the gate stopped while the call was in flight");
            return Ok(Denial::unsettled(call.id, &cut_off).refusal);
        }
        let reason = "the result of this call could not be kept; its record says how it ended";
        Ok(Refusal::new(Code::ResultGone, reason).with("invocation_id", call.id))
    }
}

fn hidden() -> Refusal {
    Refusal::new(Code::PermissionDenied, "only your own detached calls are shown")
}
