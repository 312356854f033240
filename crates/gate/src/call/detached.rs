//! Detached calls: calls that outlive their connection. The request is sealed in the ledger before the caller gets a
//! response; any live process runs it, through all stages and again after each approval, and the ledger admits it once.
//! While it waits for an approver, nothing of it is in memory.

use std::sync::Arc;

use serde_json::json;
use toolgate_model::approval::ApprovalStatus;
use toolgate_model::arguments::arguments_hash;
use toolgate_model::canonical::to_canonical;
use toolgate_model::id::InvocationId;
use toolgate_model::merkle::sha256;
use toolgate_model::principal::TenantId;
use toolgate_model::secret::{Material, Secret};
use toolgate_model::tool_alias::{self, Meaning};

pub(super) use self::stored::StoredOutcome;
use self::stored::{FIELD, StoredRequest};
use super::Pipeline;
use super::trace::trace_of;
use super::{Call, CallRequest, CallResult, Denial, Detaching, Presence, RunOutcome, RunState};
use crate::identify::Caller;
use crate::ports::approver::consent_of;
use crate::ports::ledger::{
    AuditContext, ClaimDetached, ClaimedCall, DetachCall, Detached, DetachedCall, DetachedState, EndApproval,
    FinishDetached, Freshness,
};
use crate::ports::sealer::{CallPart, SealBinding, SealError};
use crate::refusal::{Code, Refusal, Stage};
use crate::request_context::in_current_request;

pub use self::reading::{DetachedReader, DetachedView, Follower};
use self::runs::Run;
pub(crate) use self::runs::Runs;

pub(super) mod pickup;
mod reading;
mod runs;
mod stored;

/// How often a call is started that never ends because the process stops each time.
const MAX_ATTEMPTS: u32 = 5;
/// The maximum number of calls claimed by a process.
const MAX_RUNNING: usize = 512;
/// The maximum number of calls claimed in one batch.
const CLAIMED_AT_ONCE: u32 = 100;
/// How often a request is sealed again if its master key is retired in the meantime.
const SEAL_ATTEMPTS: u32 = 3;

impl Pipeline {
    /// Accepts a call that outlives its connection, and starts it. Sent again under the same idempotency key, it is the
    /// same call.
    pub async fn detach(self: &Arc<Self>, caller: Caller, request: CallRequest) -> Result<InvocationId, Denial> {
        let (call, permitted) = self.begin(caller, request).map_err(Denial::unrecorded)?;
        let permitted = permitted
            .and_then(|()| self.refused_calls.check(&call.caller, call.arrived))
            .and_then(|()| self.refused_calls.check_recorded(&call.caller, call.arrived));
        let ran = match permitted {
            Ok(()) => return self.detached_id(&call).await.map_err(Denial::unrecorded),
            // Refused and recorded like any other.
            refused => self.run(call, refused).await,
        };
        match ran {
            RunOutcome::Done(outcome) => outcome.map(|result| result.invocation),
            RunOutcome::Parked(id) => Ok(id),
        }
    }

    /// Detaches a call that has reached an approver from its connection.
    pub(super) async fn detach_begun(self: &Arc<Self>, call: &Call) -> Result<RunOutcome, Refusal> {
        let idempotency_key = match call.detaching {
            Detaching::ToBePickedUp => Some(pickup::key(&call.tool, &call.parameters, call.digested_input())?),
            Detaching::Always | Detaching::WhereConfigured => call.idempotency_key.clone(),
        };
        let call = Call { idempotency_key, ..call.clone() };
        self.detached_id(&call).await.map(RunOutcome::Parked)
    }

    async fn detached_id(self: &Arc<Self>, call: &Call) -> Result<InvocationId, Refusal> {
        // Before it is stored: from then on it is ready, and any call that does not run here can be claimed.
        let run = self.detached_runs.begin(call.id);
        match self.store(call).await? {
            Detached::Known(known) => Ok(known),
            Detached::Accepted => {
                let own = Call { waits: false, may_detach: false, detached: true, ..call.clone() };
                // Nobody waits on the connection any more.
                let own = Call { presence: Presence::default(), observer: None, client: None, ..own };
                self.spawn_detached(own, run);
                Ok(call.id)
            }
        }
    }

    /// Seals and stores the caller's request.
    pub(super) async fn store(&self, call: &Call) -> Result<Detached, Refusal> {
        let request = StoredRequest::of(call);
        let text = serde_json::to_string(&request).map_err(|_| unwritable())?;
        let limits = self.settings.detached;
        if text.len() > limits.request_bytes {
            let reason = format!(
                "a detached call may have at most {} bytes, and this one has {}; send less, or call without detaching",
                limits.request_bytes,
                text.len()
            );
            return Err(Refusal::new(Code::BodyTooLarge, reason).with("limit", limits.request_bytes));
        }
        let mut material = Material::new();
        material.insert(FIELD.to_owned(), Secret::new(text));
        let tenant = call.caller.tenant();
        let binding = SealBinding::of_call(tenant, call.id, CallPart::Request);
        let mut attempts = SEAL_ATTEMPTS;
        loop {
            attempts -= 1;
            let command = DetachCall {
                audit: self.audit(&call.caller),
                call: DetachedCall {
                    id: call.id,
                    tenant: tenant.clone(),
                    agent: call.agent.clone(),
                    actor: call.caller.id().clone(),
                    key: call.caller.key(),
                    tool: qualified(&call.tool),
                    idempotency_key: call.idempotency_key.clone(),
                    state: DetachedState::Ready,
                    asked: Vec::new(),
                    cancelled: false,
                    attempts: 1,
                    created_at: call.arrived,
                    finished_at: None,
                },
                sealed: self.sealer.seal(&binding, &material).await?,
                // Values that look like secrets are not hashed; the credential's own secret is not known yet.
                arguments_hash: arguments_hash(&call.parameters, &[]),
                request_digest: call.idempotency_key.as_ref().map(|_| request_digest(call)),
                repeats: match call.detaching {
                    Detaching::ToBePickedUp => call.idempotency_key.as_ref().and_then(pickup::shared_part),
                    Detaching::Always | Detaching::WhereConfigured => None,
                },
                process: self.process,
                limits: limits.stored,
            };
            match self.detached_calls.detach_call(command).await {
                Err(retired) if retired.code() == Code::MasterKeyRetired && attempts > 0 => {}
                outcome => return outcome,
            }
        }
    }

    /// Runs a call that this process has claimed, in its own task.
    fn spawn_detached(self: &Arc<Self>, call: Call, run: Run) {
        let pipeline = Arc::clone(self);
        tokio::spawn(in_current_request(async move {
            let _turn = pipeline.detached_runs.turn(call.caller.tenant(), &call.agent).await;
            let in_flight = pipeline.in_flight.token();
            let (tenant, id) = (call.caller.tenant().clone(), call.id);
            let ran = pipeline.run(call, Ok(())).await;
            let state = pipeline.ended(&tenant, id, ran).await;
            drop(in_flight);
            run.end(state).await;
        }));
    }

    /// Claims ready calls, runs them and returns their number. Called periodically.
    pub async fn continue_detached(self: &Arc<Self>) -> Result<u64, Refusal> {
        let mut begun = 0;
        let now = self.clock.now();
        if self.clock.is_steady() && self.detached_calls.has_overdue_detached(now).await? {
            self.approvals.reap_approvals(self.process, now).await?;
        }
        loop {
            let running = self.detached_runs.running();
            if running.len() >= MAX_RUNNING {
                break;
            }
            let command =
                ClaimDetached { process: self.process, now: self.clock.now(), limit: CLAIMED_AT_ONCE, running };
            let claimed = self.detached_calls.claim_detached(command).await?;
            let full = claimed.len() >= CLAIMED_AT_ONCE as usize;
            for claimed in claimed {
                begun += 1;
                let pipeline = Arc::clone(self);
                let run = self.detached_runs.begin(claimed.call.id);
                tokio::spawn(async move {
                    let call = &claimed.call;
                    let _turn = pipeline.detached_runs.turn(&call.tenant, &call.agent).await;
                    let in_flight = pipeline.in_flight.token();
                    let (tenant, id) = (call.tenant.clone(), call.id);
                    let ran = pipeline.run_claimed(claimed).await;
                    let state = pipeline.ended(&tenant, id, ran).await;
                    drop(in_flight);
                    run.end(state).await;
                });
            }
            if !full {
                break;
            }
        }
        self.notify_followers().await?;
        Ok(begun)
    }

    /// Notifies local followers of calls about their progress on other processes.
    async fn notify_followers(&self) -> Result<(), Refusal> {
        let followed = self.detached_runs.followed();
        // Without other processes, each run notifies its followers itself.
        if followed.is_empty() || !self.approvals.shares_approvals() {
            return Ok(());
        }
        for (id, state) in self.detached_calls.detached_states(&followed).await? {
            self.detached_runs.note(id, state);
        }
        Ok(())
    }

    /// Completes when a call may have become ready to run.
    pub async fn detached_ready(&self) {
        self.detached_runs.woken().await;
    }

    /// Ends calls that were cut off after their admission, and deletes expired outcomes.
    pub async fn sweep_detached(&self) -> Result<u64, Refusal> {
        if !self.clock.is_steady() {
            return Ok(0);
        }
        let now = self.clock.now();
        self.detached_calls.sweep_detached(now, now.minus(self.settings.detached.keep)).await
    }

    /// Stores the outcome of a run and returns the state of the call.
    async fn ended(&self, tenant: &TenantId, id: InvocationId, ran: RunOutcome) -> DetachedState {
        match ran {
            RunOutcome::Parked(_) => DetachedState::Waiting,
            RunOutcome::Done(outcome) => self.ended_as(tenant, id, *outcome).await,
        }
    }

    async fn ended_as(
        &self,
        tenant: &TenantId,
        id: InvocationId,
        outcome: Result<CallResult, Denial>,
    ) -> DetachedState {
        match outcome {
            Ok(result) if result.replayed => {
                let outcome = StoredOutcome::answered(&result);
                let finish = self.finish(tenant, id, &outcome).await;
                if let Err(refusal) = self.detached_calls.finish_detached(tenant, id, finish).await {
                    tracing::warn!(%id, %refusal, "could not store the outcome of a detached call");
                }
            }
            // No record, no end: it is run again.
            Err(Denial { invocation: None, refusal, .. }) => {
                tracing::debug!(%id, %refusal, "could not run a detached call; it will be retried");
                if let Err(refusal) = self.detached_calls.release_detached(tenant, id, self.process).await {
                    tracing::debug!(%id, %refusal, "could not release a detached call; it stays claimed until its \
                        claim expires");
                }
                return DetachedState::Ready;
            }
            // Ended in the transaction of its settlement or refusal.
            _ => {}
        }
        DetachedState::Finished
    }

    /// Runs a stored call, if it may still run.
    async fn run_claimed(self: &Arc<Self>, claimed: ClaimedCall) -> RunOutcome {
        let stored = claimed.call;
        let request = match self.sealer.unseal(&claimed.request.binding, &claimed.request.sealed).await {
            Ok(material) => StoredRequest::read(&material),
            Err(error @ SealError::Damaged { .. }) => Err(Refusal::from(error)),
            Err(error) => return RunOutcome::refused(Denial::unrecorded(error.into())),
        };
        let (caller, identified) =
            match self.authenticator.identify_stored(&stored.tenant, &stored.actor, stored.key).await {
                Ok(identified) => identified,
                Err(refusal) => return RunOutcome::refused(Denial::unrecorded(refusal)),
            };
        let (request, readable) = match request {
            Ok(request) => (request, Ok(())),
            Err(refusal) => (StoredRequest::lost(&stored), Err(refusal)),
        };
        let (arrived, request_id) = (request.arrived, request.request_id());
        let traced = trace_of(stored.id, request.caller_trace(), self.settings.traces);
        let (call, permitted) = match self.begin(caller, request.into_request()) {
            Ok(begun) => begun,
            Err(refusal) => return RunOutcome::refused(Denial::unrecorded(refusal)),
        };
        let asked = stored.asked.clone();
        let call = Call { request: request_id, traced, detached: true, waits: false, answered: asked, ..call };
        let call = Call { id: stored.id, arrived, ..call };
        let may_run = async {
            readable?;
            identified.and(permitted).map_err(|refusal| refusal.at(Stage::Identify))?;
            if stored.cancelled {
                self.end_approvals_of(&stored).await?;
                let reason = "the caller cancelled the call before it was admitted; nothing was run";
                return Err(Refusal::new(Code::CallCancelled, reason).at(Stage::Approve));
            }
            if stored.attempts > MAX_ATTEMPTS {
                let reason = format!("the call was started {MAX_ATTEMPTS} times, and the gate stopped each time");
                return Err(Refusal::new(Code::Internal, reason));
            }
            self.require_approved(&stored).await.map_err(|refusal| refusal.at(Stage::Approve))
        };
        match may_run.await {
            Ok(()) => self.run(call, Ok(())).await,
            Err(refusal) if refusal.code() == Code::LedgerUnavailable => {
                RunOutcome::refused(Denial::unrecorded(refusal))
            }
            Err(refusal) => {
                let mut run_state = RunState::start(&*self.clock);
                // Only for the record: finds the grant and tool that it was about.
                let _ = self.check(&call, Freshness::Newest, &mut run_state).await;
                let outcome = Err(self.record_denial(&call, &mut run_state, refusal).await);
                self.report(&call, &mut run_state, &outcome);
                RunOutcome::Done(Box::new(outcome))
            }
        }
    }

    /// Refuses if an approver has not approved what the call waited for, whatever requires an approval now.
    async fn require_approved(&self, stored: &DetachedCall) -> Result<(), Refusal> {
        for asked in &stored.asked {
            let found = self.approvals.approval(&stored.tenant, asked.approval).await?;
            let lost = || {
                Refusal::new(
                    Code::ApprovalRequired,
                    "the approval of this call no longer exists; call \
                again",
                )
            };
            consent_of(&found.ok_or_else(lost)?)?;
        }
        Ok(())
    }

    /// Ends the approvals that a cancelled call waited for.
    async fn end_approvals_of(&self, stored: &DetachedCall) -> Result<(), Refusal> {
        for asked in &stored.asked {
            let (tenant, actor) = (stored.tenant.clone(), stored.actor.clone());
            let audit = AuditContext { tenant, actor, time: self.clock.now() };
            let reason = "the caller cancelled the call".to_owned();
            let end = EndApproval { audit, id: asked.approval, status: ApprovalStatus::Cancelled, reason };
            self.approvals.end_approval(end).await?;
        }
        Ok(())
    }

    /// The record that ends a detached call, with its outcome sealed.
    pub(super) async fn finish(&self, tenant: &TenantId, id: InvocationId, outcome: &StoredOutcome) -> FinishDetached {
        let binding = SealBinding::of_call(tenant, id, CallPart::Outcome);
        let sealed = match outcome.material() {
            Some(material) => self.sealer.seal(&binding, &material).await.map_err(|error| error.to_string()),
            None => Err("it cannot be serialized as JSON".to_owned()),
        };
        if let Err(error) = &sealed {
            tracing::error!(%id, error, "could not seal the outcome of a detached call; it is not stored");
        }
        FinishDetached { process: self.process, sealed: sealed.ok(), time: self.clock.now() }
    }
}

/// A tool that was named by its alias, as the log names it.
fn qualified(tool: &str) -> String {
    match tool_alias::read(tool) {
        Some(Meaning::Tool(service, name)) => service.with_tool(name.as_str()),
        _ => tool.to_owned(),
    }
}

/// The digest by which two requests are the same.
fn request_digest(call: &Call) -> String {
    let mut request = json!({
        "tool": call.tool, "version": call.version, "grant_id": call.grant, "parameters": call.parameters,
        "context": call.context,
    });
    call.digest_input(&mut request);
    sha256(&to_canonical(&request)).to_hex()
}

fn unwritable() -> Refusal {
    Refusal::new(Code::Internal, "the call cannot be serialized")
}
