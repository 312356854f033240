//! Detached calls for their callers: progress, outcome and cancellation.

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

/// How long a request to cancel waits for the end of the call.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq)]
pub enum DetachedView {
    Open(Box<DetachedCall>),
    /// The result that the caller would have received on its connection.
    Ended(Box<Result<CallResult, Denial>>),
}

/// Receives each new state of a call.
pub struct Follower(watch::Receiver<DetachedState>);

impl Follower {
    /// Returns once the state of the call differs from when this was last called.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // INVARIANT: the sender lives as long as there is a receiver.
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

    /// The progress or the outcome of a detached call of the caller.
    pub async fn detached_call(&self, caller: &Caller, id: InvocationId) -> Result<DetachedView, Refusal> {
        let StoredCall { call, outcome } = self.own_detached(caller, id).await?;
        if call.state != DetachedState::Finished {
            return Ok(DetachedView::Open(Box::new(call)));
        }
        let Some(outcome) = outcome else { return Err(self.without_outcome(&call).await?) };
        let material = self.sealer.unseal(&outcome.binding, &outcome.sealed).await?;
        Ok(DetachedView::Ended(Box::new(StoredOutcome::read(&material)?.into_result())))
    }

    /// Notes that the caller has the outcome of an ended call: from then on it gives way to further calls.
    pub async fn fetched(&self, caller: &Caller, id: InvocationId) -> Result<(), Refusal> {
        self.detached_calls.note_fetched(caller.tenant(), id).await
    }

    /// The progress or the outcome of a call that was just detached, once it waits, runs or has ended; not for longer than
    /// this.
    pub async fn detached_call_begun(
        &self,
        caller: &Caller,
        id: InvocationId,
        wait: Duration,
    ) -> Result<DetachedView, Refusal> {
        let mut follower = self.follow_detached(id);
        let timeout = pause(wait);
        tokio::pin!(timeout);
        loop {
            match self.detached_call(caller, id).await? {
                DetachedView::Open(call) if call.state == DetachedState::Ready => {}
                view => return Ok(view),
            }
            tokio::select! {
                () = follower.changed() => {}
                () = &mut timeout => return self.detached_call(caller, id).await,
            }
        }
    }

    /// The progress or the outcome, once the call has ended or this much time has passed.
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

    /// Follows a call. The permission is checked when its state is read.
    pub fn follow_detached(&self, id: InvocationId) -> Follower {
        Follower(self.detached_runs.follow(id, DetachedState::Ready))
    }

    /// The detached calls of the caller, or of everybody for callers that may read the log; newest first.
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

    /// Cancels a call that is not admitted yet. An admitted call continues, and an ended one stays as it is.
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

    /// Deletes the outcome of a call before it expires.
    pub async fn forget_detached(&self, caller: &Caller, id: InvocationId) -> Result<(), Refusal> {
        let StoredCall { call, .. } = self.own_detached(caller, id).await?;
        if self.detached_calls.forget_outcome(caller.tenant(), id).await? {
            return Ok(());
        }
        let reason = format!("the call is {}; cancel it instead", call.state.as_str());
        Err(Refusal::new(Code::VersionConflict, reason).with("invocation_id", id))
    }

    /// A call made by or for the caller. Its outcome is visible to nobody else.
    async fn own_detached(&self, caller: &Caller, id: InvocationId) -> Result<StoredCall, Refusal> {
        let found = self.detached_calls.detached_call(caller.tenant(), id).await?;
        let is_own = |call: &DetachedCall| {
            call.actor == *caller.id() || call.agent == *caller.id() || caller.may(Permission::ActAs)
        };
        if let Some(found) = found.filter(|found| is_own(&found.call)) {
            return Ok(found);
        }
        // A caller that may see the record learns that no outcome is stored; others that there is no such call.
        self.administration.invocation(caller, id).await?;
        let reason = "the result of this call is not stored: the call was not detached, or its result has expired";
        Err(Refusal::new(Code::ResultGone, reason).with("invocation_id", id))
    }

    /// Why an ended call has no outcome.
    async fn without_outcome(&self, call: &DetachedCall) -> Result<Refusal, Refusal> {
        let record = self.invocations.invocation(&call.tenant, call.id).await?;
        if record.is_some_and(|record| record.status == InvocationStatus::Unknown) {
            let cut_off = Refusal::new(Code::OutcomeUnknown, "the gate stopped while the call was in flight");
            return Ok(Denial::unsettled(call.id, &cut_off).refusal);
        }
        let reason = "the result of this call could not be stored; see its invocation record for the outcome";
        Ok(Refusal::new(Code::ResultGone, reason).with("invocation_id", call.id))
    }
}

fn hidden() -> Refusal {
    Refusal::new(Code::PermissionDenied, "you can list only your own detached calls")
}
