//! An approver who decides at once, with the real broker.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use toolgate_approval::{ApprovalBroker, NoLinks};
use toolgate_gate::ports::approver::{ApprovalOutcome, Approver, Ask, Asked, Attached, Covered, Gone, Presentation};
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::DecideApproval;
use toolgate_gate::refusal::Refusal;
use toolgate_model::approval::{Approval, Channel, Coverage, Decision, Reach, StandingApproval, StandingRequest, Vote};
use toolgate_model::id::{ProcessId, StandingApprovalId};
use toolgate_model::principal::TenantId;
use toolgate_testkit::ledger_fixture::TestTenant;

type Deciding = Pin<Box<dyn Future<Output = Decision> + Send>>;

/// Decides as a function of what is shown.
pub struct Person {
    desk: ApprovalBroker,
    tenant: TestTenant,
    decide: Box<dyn Fn(Approval) -> Deciding + Send + Sync>,
}

impl Person {
    pub fn new(tenant: &TestTenant, decide: impl Fn(Approval) -> Deciding + Send + Sync + 'static) -> Self {
        let clock = Arc::new(tenant.clock.clone());
        let process = ProcessId::new(tenant.now(), random().unwrap());
        let desk = ApprovalBroker::new(tenant.ledger.clone(), tenant.ledger.clone(), clock, process, Arc::new(NoLinks));
        Self { desk, tenant: tenant.clone(), decide: Box::new(decide) }
    }

    /// Decides on what is in the ledger.
    async fn answer(&self, approval: Approval) {
        let id = approval.id;
        let decision = (self.decide)(approval).await;
        let by = self.tenant.administrator.clone();
        let command = DecideApproval {
            audit: self.tenant.audit_of(&by),
            id,
            vote: Vote {
                by,
                decision,
                channel: Channel::Http,
                reason: None,
                answer: None,
                wish: None,
                at: self.tenant.now(),
            },
            standing: None,
            notice: None,
            idempotency_key: None,
            request_digest: String::new(),
        };
        let decided = self.tenant.ledger.decide_approval(command).await.unwrap();
        self.desk.resolved(&decided);
    }
}

#[async_trait]
impl Approver for Person {
    async fn approve(&self, ask: Ask, asked: Asked<'_>, gone: Gone) -> Result<ApprovalOutcome, Refusal> {
        let (shown, mut waits) = tokio::sync::mpsc::unbounded_channel();
        let tell = |approval: &Approval| {
            asked(approval);
            shown.send(approval.clone()).unwrap();
        };
        let consent = self.desk.approve(ask, &tell, gone);
        tokio::pin!(consent);
        tokio::select! {
            biased;
            consent = &mut consent => return consent,
            Some(approval) = waits.recv() => self.answer(approval).await,
        }
        consent.await
    }

    fn resolved(&self, approval: &Approval) {
        self.desk.resolved(approval);
    }

    fn standing(&self, approval: &Approval, wish: &StandingRequest) -> Result<(Coverage, Reach), String> {
        self.desk.standing(approval, wish)
    }

    fn covering(&self, standing: &[StandingApproval], call: &Covered<'_>) -> Result<Vec<StandingApprovalId>, String> {
        self.desk.covering(standing, call)
    }

    fn protects(&self, call: &Covered<'_>) -> Option<String> {
        self.desk.protects(call)
    }

    fn present(&self, approval: &Approval, standing: &[StandingApproval]) -> Presentation {
        self.desk.present(approval, standing)
    }

    fn attach(&self, tenant: &TenantId) -> Attached {
        self.desk.attach(tenant)
    }

    async fn close(&self) {
        self.desk.close().await;
    }
}
