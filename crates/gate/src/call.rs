//! The call pipeline. There is exactly one: every transport decodes into a [`CallRequest`], and [`Pipeline::invoke`]
//! runs it through the stages, one module each, in the order in which they are listed here.
//!
//! Each stage takes the value of the previous one, and only `admit` creates an [`Admitted`], without which nothing can
//! be executed. A refusal at any stage is recorded before it is returned.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use toolgate_model::guard::HookDecision;
use toolgate_model::id::{GrantId, InvocationId};
use toolgate_model::principal::TenantId;

use crate::identify::Caller;
use crate::ports::clock::Clock;
use crate::ports::ledger::{DetachedState, Freshness};
use crate::refusal::{Code, Refusal, Stage};
use crate::request_context::in_current_request;

pub use self::admit::{Admitted, CallCredential};
pub use self::conformance::{Conformance, ConformanceCall};
pub use self::denial::Denial;
pub use self::detached::pickup::{Repeated, call_digest};
pub use self::detached::{DetachedReader, DetachedView, Follower};
pub use self::explain::{Explanation, Question, Step};
pub use self::external::{ExternalCall, ExternalPermit};
pub use self::hooks::{AskForm, HookQuestion, HookResponse, HookTerms, Hooks, UnknownTools};
pub use self::pipeline::Pipeline;
pub use self::presence::{Presence, Waiting};
pub use self::progress::{Modified, Observer, Progress, UpstreamProgress};
pub use self::request::CallRequest;
pub use self::settle::{CallError, CallOutcome, CallResult};
pub use self::stream::StreamSink;
pub use self::timing::{StageTime, StageTimes, Wait};

pub(crate) use self::constrain::{placement_of, usual_adapter};
pub(crate) use self::request::{AskedHook, Call, Detaching, ToolStanding};
use self::request::{CallOptions, require_permitted};

mod admit;
mod agent_tasks;
mod approve;
pub(crate) mod authorize;
mod binding;
mod client;
mod conformance;
mod constrain;
pub(crate) mod context;
mod denial;
pub(crate) mod detached;
mod eligible;
pub(crate) mod execute;
mod explain;
mod external;
mod guard;
mod hooks;
mod inspect;
mod messages;
mod pipeline;
mod presence;
mod progress;
mod protocol_messages;
pub(crate) mod refused;
mod renewals;
mod report;
mod request;
mod resolve;
mod sessions;
mod settle;
mod steps;
pub(crate) mod stops;
mod stored;
pub(crate) mod stores;
mod stream;
mod tally;
#[cfg(test)]
mod testing;
mod timing;
mod trace;
mod turns;

/// How often a call is decided again if the state that it was decided on changes before the admission.
const JUDGEMENTS: u32 = 4;
/// The same for calls whose rules read counters, which every call of the same agent on another replica changes.
const COUNTED_JUDGEMENTS: u32 = 64;

/// What the stages have established so far, recorded with a refusal.
#[derive(Clone, Default)]
struct RunState {
    found: Option<eligible::Candidate>,
    grant: Option<GrantId>,
    decision: Option<Box<HookDecision>>,
    /// The call with its whole context, if it names objects of this gate.
    bound: Option<Arc<Call>>,
    times: StageTimes,
}

impl RunState {
    fn start(clock: &dyn Clock) -> Self {
        Self { times: StageTimes::start(clock), ..Self::default() }
    }
}

/// The outcome of a call that may become detached.
#[derive(Debug, Clone, PartialEq)]
pub enum Invoked {
    Completed(Box<CallResult>),
    /// It continues without its connection.
    Detached(InvocationId),
}

pub(crate) enum RunOutcome {
    Done(Box<Result<CallResult, Denial>>),
    /// It waits in the ledger, or another run continues it from there.
    Parked(InvocationId),
}

impl RunOutcome {
    fn refused(denial: Denial) -> Self {
        Self::Done(Box::new(Err(denial)))
    }
}

/// The outcome of one pass through the stages.
enum PassOutcome {
    /// The call has ended. After the admission it is never refused: an error then leaves it unsettled.
    Done(Box<Result<CallResult, Denial>>),
    /// It waits for an approver in the ledger.
    Parked,
    /// It would wait for an approver on its connection.
    Detach,
    /// An approver has decided, or the state has changed: everything is decided again on the newest state.
    Again {
        /// Whether its rules read what the agent has called and spent so far, which other calls change.
        counted: bool,
    },
}

/// What a call keeps from one pass to the next.
#[derive(Default)]
struct RetryState {
    /// Approvals given so far, each for what was shown.
    answered: Vec<approve::GivenApproval>,
    /// Its turn among the calls whose rules read the same counters.
    turn: Option<turns::Turn>,
}

impl Pipeline {
    /// Runs a call through the pipeline.
    pub async fn invoke(self: &Arc<Self>, caller: Caller, request: CallRequest) -> Result<CallResult, Denial> {
        self.invoke_with(caller, request, CallOptions::default()).await
    }

    /// The same for a caller that can do without its connection: if the operator has enabled it, a call that must wait
    /// for an approver is detached.
    pub async fn invoke_or_detach(self: &Arc<Self>, caller: Caller, request: CallRequest) -> Result<Invoked, Denial> {
        let options = CallOptions { may_detach: true, ..CallOptions::default() };
        self.run_detachable(caller, request, options).await
    }

    /// The same for a caller that never waits for an approver on its connection.
    pub async fn invoke_detaching(self: &Arc<Self>, caller: Caller, request: CallRequest) -> Result<Invoked, Denial> {
        let options = CallOptions { may_detach: true, detaching: Detaching::Always, ..CallOptions::default() };
        self.run_detachable(caller, request, options).await
    }

    async fn run_detachable(
        self: &Arc<Self>,
        caller: Caller,
        request: CallRequest,
        options: CallOptions,
    ) -> Result<Invoked, Denial> {
        match self.run_in_task(caller, request, options).await? {
            RunOutcome::Done(outcome) => outcome.map(|result| Invoked::Completed(Box::new(result))),
            RunOutcome::Parked(id) => Ok(Invoked::Detached(id)),
        }
    }

    /// The same, with a tool that is in no catalog.
    async fn invoke_with(
        self: &Arc<Self>,
        caller: Caller,
        request: CallRequest,
        options: CallOptions,
    ) -> Result<CallResult, Denial> {
        match self.run_in_task(caller, request, options).await? {
            RunOutcome::Done(outcome) => *outcome,
            // INVARIANT: only calls that may be detached are parked.
            RunOutcome::Parked(id) => {
                Err(Denial::refused(Some(id), Refusal::new(Code::Internal, "the call was detached")))
            }
        }
    }

    /// Runs a call in its own task: a caller that disconnects cancels a call that is not admitted yet, and neither its
    /// refusal nor its settlement is lost with the connection.
    async fn run_in_task(
        self: &Arc<Self>,
        caller: Caller,
        request: CallRequest,
        options: CallOptions,
    ) -> Result<RunOutcome, Denial> {
        // A transport that knows whether its caller still waits already runs the call in such a task.
        let (waiting, presence) = match &request.presence {
            Some(presence) => (None, presence.clone()),
            None => {
                let (waiting, presence) = Presence::new();
                (Some(waiting), presence)
            }
        };
        let (call, permitted) = self.begin(caller, request).map_err(Denial::unrecorded)?;
        let CallOptions { tool: uncataloged_tool, asked, takes_changes, waits, answered, may_detach, detaching } =
            options;
        let call = Call { uncataloged_tool, asked, takes_changes, waits, answered, may_detach, presence, ..call };
        let call = Call { detaching, ..call };
        let (tenant, id) = (call.caller.tenant().clone(), call.id);
        let (pipeline, in_flight) = (Arc::clone(self), self.in_flight.token());
        let running = async move {
            let _in_flight = in_flight;
            pipeline.run(call, permitted).await
        };
        let ran = match waiting {
            None => AssertUnwindSafe(running).catch_unwind().await.ok(),
            Some(_waiting) => tokio::spawn(in_current_request(running)).await.ok(),
        };
        match ran {
            Some(ran) => Ok(ran),
            None => Err(self.broke_off(&tenant, id).await),
        }
    }

    async fn run(self: &Arc<Self>, mut call: Call, permitted: Result<(), Refusal>) -> RunOutcome {
        let mut run_state = RunState::start(&*self.clock);
        let permitted = match permitted.and_then(|()| self.refused_calls.check(&call.caller, call.arrived)) {
            Ok(()) => self.join_session(&mut call).await,
            refused => refused,
        };
        let call = Arc::new(call);
        let outcome = match permitted {
            Ok(()) => self.run_stages(&call, &mut run_state).await,
            Err(refusal) => Err(refusal.at(Stage::Identify)),
        };
        let outcome = match outcome {
            Ok(PassOutcome::Detach) => self.detach_begun(&call).await.map_err(|refusal| refusal.at(Stage::Approve)),
            Ok(PassOutcome::Done(outcome)) => Ok(RunOutcome::Done(outcome)),
            Ok(PassOutcome::Parked | PassOutcome::Again { .. }) => Ok(RunOutcome::Parked(call.id)),
            Err(refusal) => Err(refusal),
        };
        let ran = match outcome {
            Ok(ran) => ran,
            Err(refusal) => RunOutcome::refused(self.record_denial(&call, &mut run_state, refusal).await),
        };
        if let RunOutcome::Done(outcome) = &ran {
            self.report(&call, &mut run_state, outcome);
        }
        ran
    }

    /// The denial for a call that failed inside the gate: the ledger knows whether it was admitted.
    async fn broke_off(&self, tenant: &TenantId, id: InvocationId) -> Denial {
        let fault = Refusal::new(Code::Internal, "the call failed inside the gate; see the gate's log");
        let denial = match self.invocations.invocation(tenant, id).await {
            Ok(None) => Denial::unrecorded(fault),
            Ok(Some(_)) | Err(_) => Denial::unsettled(id, &fault),
        };
        self.report_broken(tenant, id, &denial);
        denial
    }

    /// Runs the stages. A refusal comes from a stage before the admission.
    async fn run_stages(self: &Arc<Self>, call: &Arc<Call>, run_state: &mut RunState) -> Result<PassOutcome, Refusal> {
        let mut call = Arc::clone(call);
        let mut retry_state = RetryState::default();
        let mut freshness = Freshness::Recent;
        let mut left = JUDGEMENTS;
        while left > 0 {
            let counted = match self.run_pass(&call, freshness, &mut retry_state, run_state).await? {
                PassOutcome::Again { counted } => counted,
                outcome => return Ok(outcome),
            };
            left -= 1;
            if counted && retry_state.turn.is_none() {
                // From here on only calls on other replicas can come between the decision and the admission.
                retry_state.turn = Some(self.turns.take(call.caller.tenant(), &call.agent).await);
                left = COUNTED_JUDGEMENTS;
            }
            let caller =
                self.authenticator.identify_again(&call.caller).await.map_err(|refusal| refusal.at(Stage::Admit))?;
            require_permitted(&caller, &call.agent).map_err(|refusal| refusal.at(Stage::Admit))?;
            call = Arc::new(Call { caller, ..(*call).clone() });
            freshness = Freshness::Newest;
        }
        let reason = "the grants or policies of this call keep changing; try again";
        Err(Refusal::new(Code::VersionConflict, reason).at(Stage::Admit))
    }

    /// Decides on each action that the call could have, and makes the call as the first one whose grants have capacity.
    async fn run_pass(
        self: &Arc<Self>,
        call: &Arc<Call>,
        mut freshness: Freshness,
        retry_state: &mut RetryState,
        run_state: &mut RunState,
    ) -> Result<PassOutcome, Refusal> {
        let constrained = match self.check(call, freshness, run_state).await {
            Ok(constrained) => constrained,
            // A refusal must be based on the newest state: a grant that was just created must be seen.
            Err(_) => {
                freshness = Freshness::Newest;
                self.check(call, freshness, run_state).await?
            }
        };
        let bound = run_state.bound.clone();
        let call = bound.as_ref().unwrap_or(call);
        let mut refused = None;
        for alternative in constrained.into_alternatives() {
            let is_first = refused.is_none();
            match self.run_alternative(call, alternative, is_first, freshness, retry_state, run_state).await {
                // Another grant may have capacity, or may still be valid.
                Err(refusal)
                    if matches!(refusal.stage(), Some(Stage::Approve | Stage::Admit))
                        && admit::is_about_the_grant(refusal.code()) =>
                {
                    refused = refused.or(Some(refusal));
                }
                outcome => return outcome,
            }
        }
        let nothing = || Refusal::new(Code::GrantNotFound, "there is no grant for this call").at(Stage::Admit);
        Err(refused.unwrap_or_else(nothing))
    }

    /// Makes the call as this action, once guardians and approvers have decided on exactly this action.
    async fn run_alternative(
        self: &Arc<Self>,
        call: &Arc<Call>,
        alternative: eligible::Alternative,
        is_first: bool,
        freshness: Freshness,
        retry_state: &mut RetryState,
        run_state: &mut RunState,
    ) -> Result<PassOutcome, Refusal> {
        let clock = &*self.clock;
        run_state.grant = alternative.first.candidate.grant();
        run_state.times.enter(Stage::Guard, clock);
        let guarded =
            self.guard(call, alternative, freshness, run_state).await.map_err(|refusal| refusal.at(Stage::Guard))?;
        run_state.times.enter(Stage::Approve, clock);
        let approved = match self.approve(call, guarded, is_first, retry_state, &mut run_state.times).await {
            Ok(approve::Step::Approved(approved)) => *approved,
            // Time has passed: the current state counts.
            Ok(approve::Step::Again) => return Ok(PassOutcome::Again { counted: false }),
            Ok(approve::Step::Parked) => return Ok(PassOutcome::Parked),
            Ok(approve::Step::Detach) => return Ok(PassOutcome::Detach),
            Err(refusal) => return Err(self.why_cancelled(call, refusal).await.at(Stage::Approve)),
        };
        let counted = approved.judged.basis.counts.is_some();
        // Reported only after the admission: the caller of a refused call must not learn what a rule redacts.
        let modified = approved.modified.clone().map(|parameters| {
            let decision = approved.judged.decision.as_deref();
            let (reason, policy) = decision.map(HookDecision::why_changed).unwrap_or_default();
            Modified { parameters, reason, policy }
        });
        call.require_present().map_err(|refusal| refusal.at(Stage::Admit))?;
        run_state.times.enter(Stage::Admit, clock);
        let admission = self.admit(call, approved, &mut run_state.times).await;
        let (admitted, opened) = match admission.map_err(|refusal| refusal.at(Stage::Admit))? {
            admit::Outcome::Admitted(admitted, opened) => {
                if let Some(modified) = modified {
                    call.notify(|| Progress::Modified(Box::new(modified)));
                }
                call.notify(|| Progress::Admitted(call.id));
                if call.detached {
                    self.detached_runs.note(call.id, DetachedState::Running);
                }
                (*admitted, opened)
            }
            admit::Outcome::Replayed(result) => return Ok(PassOutcome::Done(Box::new(Ok(*result)))),
            admit::Outcome::Stale => return Ok(PassOutcome::Again { counted }),
        };
        // The next call of the agent may be decided while this one is executed.
        retry_state.turn = None;
        // From here on the call continues to its settlement, even if the caller disconnects.
        Ok(PassOutcome::Done(Box::new(self.carry_out(admitted, opened, &mut run_state.times).await)))
    }

    /// An approval that was cancelled because the calls of its agent were stopped.
    async fn why_cancelled(&self, call: &Call, refusal: Refusal) -> Refusal {
        if refusal.code() != Code::ApprovalCancelled {
            return refusal;
        }
        match self.stops.stopped(call).await {
            Ok(Some(stopped)) => stopped.refusal(),
            Ok(None) | Err(_) => refusal,
        }
    }

    /// Lets calls in flight look whether they were stopped, if another process has stopped something.
    pub async fn look_for_stops(&self) -> Result<(), Refusal> {
        if self.admitted.is_empty() {
            return Ok(());
        }
        self.stops.look_if_changed().await
    }

    /// Everything after the admission. No failure in here is a refusal: the service may have executed the call.
    async fn carry_out(
        &self,
        admitted: Admitted,
        opened: execute::Opened,
        times: &mut StageTimes,
    ) -> Result<CallResult, Denial> {
        let id = admitted.invocation().id;
        let _in_flight = self.admitted.token();
        times.enter(Stage::Execute, &*self.clock);
        let executed = self.execute(&admitted, opened).await;
        times.enter(Stage::Inspect, &*self.clock);
        let inspected = self.inspect(&admitted, executed).await;
        let never_sent = inspected.never_sent;
        times.enter(Stage::Settle, &*self.clock);
        self.settle(admitted, inspected, times).await.map_err(|failure| match never_sent {
            true => Denial::never_sent(id, failure),
            false => Denial::unsettled(id, &failure),
        })
    }

    async fn check(
        &self,
        call: &Call,
        freshness: Freshness,
        run_state: &mut RunState,
    ) -> Result<constrain::Constrained, Refusal> {
        let clock = &*self.clock;
        run_state.bound = self.in_context(call, freshness).await?;
        let bound = run_state.bound.clone();
        let call = bound.as_deref().unwrap_or(call);
        run_state.times.enter(Stage::Resolve, clock);
        let resolved = self.resolve(call, freshness).await.map_err(|refusal| refusal.at(Stage::Resolve))?;
        run_state.found = resolved.first();
        run_state.times.enter(Stage::Authorize, clock);
        let authorized = self.authorize(call, resolved).map_err(|refusal| refusal.at(Stage::Authorize))?;
        run_state.grant = authorized.preferred();
        run_state.times.enter(Stage::Constrain, clock);
        self.constrain(call, authorized).map_err(|refusal| refusal.at(Stage::Constrain))
    }
}
