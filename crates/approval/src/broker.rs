//! The approval broker: calls wait here for an approver. It records an approval before it announces it, learns of
//! decisions made here and in other processes, and ends every wait at its deadline.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{oneshot, watch};
use toolgate_gate::ports::approver::{
    ApprovalOutcome, Approver, Ask, Asked, Attached, Covered, GONE, Gone, Presentation, consent_of,
};
use toolgate_gate::ports::clock::{Clock, pause};
use toolgate_gate::ports::ledger::{
    Approvals, AuditContext, Consent, EndApproval, Heartbeat, RequestApproval, StandingApprovals,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::{
    Approval, ApprovalStatus, Coverage, Reach, StandingApproval, StandingRequest, TIMED_OUT,
};
use toolgate_model::id::{ApprovalId, ProcessId, StandingApprovalId};
use toolgate_model::principal::TenantId;

use crate::links::Links;
use crate::{coverage, offers, parts, risk};

#[cfg(test)]
mod tests;

/// The reason for calls that are pending at shutdown.
const STOPPING: &str = "the gate stopped while this approval was pending";

/// Where calls wait for an approver.
pub struct ApprovalBroker {
    approvals: Arc<dyn Approvals>,
    standing_approvals: Arc<dyn StandingApprovals>,
    clock: Arc<dyn Clock>,
    process: ProcessId,
    links: Arc<dyn Links>,
    waiting: Mutex<HashMap<ApprovalId, oneshot::Sender<Approval>>>,
    attended: Arc<Mutex<BTreeMap<TenantId, u64>>>,
    closed: watch::Sender<bool>,
}

impl ApprovalBroker {
    pub fn new(
        approvals: Arc<dyn Approvals>,
        standing_approvals: Arc<dyn StandingApprovals>,
        clock: Arc<dyn Clock>,
        process: ProcessId,
        links: Arc<dyn Links>,
    ) -> Self {
        Self {
            approvals,
            standing_approvals,
            clock,
            process,
            links,
            waiting: Mutex::default(),
            attended: Arc::default(),
            closed: watch::Sender::new(false),
        }
    }

    /// Renews the lease of this process. Call it before the first call waits, and then periodically.
    pub async fn heartbeat(&self) -> Result<(), Refusal> {
        // Without other processes, nobody checks the lease.
        if !self.approvals.shares_approvals() {
            return Ok(());
        }
        let attended = self.attended.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
        self.approvals.heartbeat(Heartbeat { process: self.process, time: self.clock.now(), attended }).await
    }

    /// Collects decisions that this process was not notified of: those made in other processes, and those whose
    /// approver disconnected after they were stored.
    pub async fn collect(&self) -> Result<(), Refusal> {
        if self.is_idle() {
            return Ok(());
        }
        for approval in self.approvals.collect_approvals(self.process).await? {
            self.resolved(&approval);
        }
        Ok(())
    }

    /// Ends approvals that are overdue or belong to dead processes; returns how many.
    pub async fn reap(&self) -> Result<u64, Refusal> {
        if !self.clock.is_steady() {
            return self.collect().await.map(|()| 0);
        }
        let reaped = self.approvals.reap_approvals(self.process, self.clock.now()).await;
        self.collect().await?;
        reaped
    }

    /// The number of calls that wait here.
    pub fn waiting(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn is_idle(&self) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The consent that standing approvals give, if they cover the call.
    async fn covered(&self, approval: &Approval) -> Result<Option<Consent>, Refusal> {
        let (true, Some(arguments)) = (approval.coverable, &approval.arguments) else { return Ok(None) };
        let now = self.clock.now();
        let standing =
            self.standing_approvals.standing_for(&approval.tenant, &approval.agent, &approval.tool, now).await?;
        let (session, action) = (approval.session.as_ref(), approval.action.as_ref());
        let call = Covered { tool: &approval.tool, external: approval.external, action, arguments, session };
        let covering = coverage::covering(&standing, &call, &*self.links).ok();
        Ok(covering.map(|standing| Consent { standing, ..Consent::default() }))
    }

    async fn require_attendance(&self, tenant: &TenantId) -> Result<(), Refusal> {
        let here = self.attended.lock().unwrap_or_else(PoisonError::into_inner).contains_key(tenant);
        if here || self.approvals.is_attended(tenant, self.clock.now()).await? {
            return Ok(());
        }
        let reason = "this call requires a connected approver, and none is connected; open \
                      `toolgate approvals` and call again";
        Err(Refusal::new(Code::ApprovalRequired, reason).with("attendance", "required"))
    }

    /// Ends an approval that waits here, unless it was decided meanwhile.
    async fn end(
        &self,
        audit: &AuditContext,
        id: ApprovalId,
        status: ApprovalStatus,
        reason: &str,
    ) -> Result<Approval, Refusal> {
        let audit = AuditContext { time: self.clock.now(), ..audit.clone() };
        self.approvals.end_approval(EndApproval { audit, id, status, reason: reason.to_owned() }).await
    }
}

#[async_trait]
impl Approver for ApprovalBroker {
    async fn approve(&self, ask: Ask, asked: Asked<'_>, gone: Gone) -> Result<ApprovalOutcome, Refusal> {
        let Ask { audit, mut approval, attended, waits, grants, most_of_agent, parks, detach } = ask;
        if let Some(consent) = self.covered(&approval).await? {
            return Ok(ApprovalOutcome::Consent(consent));
        }
        if attended {
            self.require_attendance(&approval.tenant).await?;
        }
        if detach {
            return Ok(ApprovalOutcome::Detach);
        }
        approval.status = ApprovalStatus::Pending;
        let (id, expires_at) = (approval.id, approval.expires_at);
        // INVARIANT: the waiting call is registered before anybody can decide.
        let (sender, mut receiver) = oneshot::channel();
        let waiting_call = waits.then(|| WaitingCall::taken(self, id, sender));
        let process = self.process;
        let command =
            RequestApproval { audit: audit.clone(), approval: approval.clone(), process, grants, most_of_agent, parks };
        self.approvals.request_approval(command).await?;
        asked(&approval);
        if !waits {
            // It stays open without a waiting call: it is reaped when overdue.
            return Ok(ApprovalOutcome::Open(id));
        }
        // The question is in the ledger: a call that waits for days keeps no copy of it.
        drop(approval);
        let remaining = expires_at.as_millis().saturating_sub(self.clock.now().as_millis());
        let remaining = Duration::from_millis(u64::try_from(remaining).unwrap_or(0));
        let mut closed = self.closed.subscribe();
        let ended = tokio::select! {
            biased;
            Ok(decided) = &mut receiver => decided,
            () = gone => self.end(&audit, id, ApprovalStatus::Cancelled, GONE).await?,
            () = stopping(&mut closed) => self.end(&audit, id, ApprovalStatus::Cancelled, STOPPING).await?,
            () = pause(remaining) => self.end(&audit, id, ApprovalStatus::TimedOut, TIMED_OUT).await?,
        };
        drop(waiting_call);
        consent_of(&ended).map(ApprovalOutcome::Consent)
    }

    fn resolved(&self, approval: &Approval) {
        if approval.status.is_open() {
            return;
        }
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&approval.id);
        if let Some(waiting) = waiting {
            // A call that is gone meanwhile needs no decision.
            let _ = waiting.send(approval.clone());
        }
    }

    fn standing(&self, approval: &Approval, request: &StandingRequest) -> Result<(Coverage, Reach), String> {
        coverage::standing(approval, request, &*self.links)
    }

    fn covering(&self, standing: &[StandingApproval], call: &Covered<'_>) -> Result<Vec<StandingApprovalId>, String> {
        coverage::covering(standing, call, &*self.links)
    }

    fn protects(&self, call: &Covered<'_>) -> Option<String> {
        let workspace = call.session.and_then(|session| session.workspace.as_ref());
        coverage::is_protected(call.tool, call.arguments, workspace, &*self.links)
    }

    fn present(&self, approval: &Approval, standing: &[StandingApproval]) -> Presentation {
        Presentation {
            risk: risk::assess(approval, &*self.links),
            parts: parts::parts(approval, standing),
            offers: offers::offers(approval, &*self.links),
            no_offer_reason: coverage::require_coverable(approval, &*self.links).err(),
        }
    }

    fn attach(&self, tenant: &TenantId) -> Attached {
        let mut attended = self.attended.lock().unwrap_or_else(PoisonError::into_inner);
        *attended.entry(tenant.clone()).or_default() += 1;
        Box::new(AttachedApprover { tenant: tenant.clone(), attended: Arc::clone(&self.attended) })
    }

    async fn close(&self) {
        self.closed.send_replace(true);
    }
}

/// Waits for the shutdown of this process.
async fn stopping(closed: &mut watch::Receiver<bool>) {
    // An error means that the broker is gone, which ends the wait as well.
    let _ = closed.wait_for(|closed| *closed).await;
}

/// A call that waits for its decision; deregistered on drop.
struct WaitingCall<'a> {
    broker: &'a ApprovalBroker,
    id: ApprovalId,
}

impl<'a> WaitingCall<'a> {
    fn taken(broker: &'a ApprovalBroker, id: ApprovalId, sender: oneshot::Sender<Approval>) -> Self {
        broker.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        Self { broker, id }
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.broker.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// A connected approver, for as long as this is kept.
struct AttachedApprover {
    tenant: TenantId,
    attended: Arc<Mutex<BTreeMap<TenantId, u64>>>,
}

impl Drop for AttachedApprover {
    fn drop(&mut self) {
        let mut attended = self.attended.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = attended.get_mut(&self.tenant) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                attended.remove(&self.tenant);
            }
        }
    }
}
