//! Ports besides the ledger, each with a scripted behaviour.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate_model::approval::{Approval, Coverage, Reach, StandingApproval, StandingRequest};
use toolgate_model::guard::{Hook, Verdict};
use toolgate_model::id::StandingApprovalId;
use toolgate_model::principal::TenantId;
use toolgate_model::secret::{Material, Secret};

use crate::action::Action;
use crate::call::{Admitted, StageTimes};
use crate::ports::approver::{
    ApprovalOutcome, Approver, Ask, Asked, Attached, Covered, Gone, Presentation, Risk, RiskLevel,
};
use crate::ports::guardian::{Guardian, Hooked, PolicyBasis, Ruling, Subject};
use crate::ports::ledger::Freshness;
use crate::ports::sealer::{MasterKeyId, SealBinding, SealError, SealedMaterial, Sealer};
use crate::ports::source::{Access, Execution, ServiceResponse, Source};
use crate::ports::telemetry::{FinishedAs, FinishedCall, Telemetry, TracedCall};
use crate::refusal::{Code, Refusal, Stage};
use crate::request_context::RequestId;

/// The material of every credential.
pub(in crate::call) const SECRET: &str = "the secret of the credential";

pub(super) struct FixedSealer;

#[async_trait]
impl Sealer for FixedSealer {
    async fn seal(&self, _: &SealBinding, _: &Material) -> Result<SealedMaterial, SealError> {
        Err(SealError::Provider { reason: "nothing is sealed here".to_owned() })
    }

    async fn unseal(&self, _: &SealBinding, _: &SealedMaterial) -> Result<Material, SealError> {
        let mut material = Material::new();
        material.insert("token".to_owned(), Secret::new(SECRET.to_owned()));
        Ok(material)
    }

    async fn rewrap(&self, _: &SealBinding, sealed: &SealedMaterial) -> Result<SealedMaterial, SealError> {
        Ok(sealed.clone())
    }

    async fn current_key(&self) -> Result<MasterKeyId, SealError> {
        Ok(MasterKeyId("first".to_owned()))
    }

    async fn renew_key(&self) -> Result<MasterKeyId, SealError> {
        self.current_key().await
    }

    async fn forget_key(&self, _: &MasterKeyId) -> Result<(), SealError> {
        Ok(())
    }

    async fn check(&self) -> Result<(), SealError> {
        Ok(())
    }
}

/// Executes HTTP calls with scripted outcomes; without one it succeeds. Keeps what it was given.
#[derive(Default)]
pub(in crate::call) struct FixedSource {
    pub(in crate::call) executions: Mutex<VecDeque<Execution>>,
    pub(in crate::call) executed: Mutex<Vec<Executed>>,
}

/// What a source was given for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::call) struct Executed {
    pub(in crate::call) deadline: Duration,
    pub(in crate::call) secret: Option<String>,
}

#[async_trait]
impl Source for FixedSource {
    fn executes(&self, action: Action) -> bool {
        action == Action::Http
    }

    async fn execute(&self, call: &Admitted, access: Option<Access<'_>>) -> Execution {
        let secret =
            access.and_then(|access| access.material.iter().next().map(|(_, value)| value.expose().to_owned()));
        self.executed.lock().unwrap().push(Executed { deadline: call.deadline(), secret });
        let scripted = self.executions.lock().unwrap().pop_front();
        scripted.unwrap_or_else(|| Ok(ServiceResponse::said(json!({"done": true}))))
    }
}

/// Keeps the reports of finished calls.
#[derive(Default)]
pub(in crate::call) struct KeptTelemetry(pub(in crate::call) Mutex<Vec<Kept>>);

/// A finished call.
#[derive(Debug, Clone)]
pub(in crate::call) struct Kept {
    pub(in crate::call) tool: String,
    pub(in crate::call) outcome: FinishedAs,
    pub(in crate::call) code: Option<String>,
    pub(in crate::call) stage: Option<Stage>,
    pub(in crate::call) is_recorded: bool,
    pub(in crate::call) request: Option<RequestId>,
    pub(in crate::call) traced: Option<TracedCall>,
    pub(in crate::call) times: StageTimes,
}

impl Telemetry for KeptTelemetry {
    fn call_finished(&self, call: &FinishedCall<'_>) {
        self.0.lock().unwrap().push(Kept {
            tool: call.tool.unwrap().to_string(),
            outcome: call.outcome,
            code: call.code.map(str::to_owned),
            stage: call.stage,
            is_recorded: call.is_recorded,
            request: call.request,
            traced: call.trace.cloned(),
            times: call.times.unwrap().clone(),
        });
    }
}

/// Gives the same verdict on everything; without one it allows.
#[derive(Default)]
pub(in crate::call) struct FixedGuardian {
    pub(in crate::call) verdict: Mutex<Option<Verdict>>,
    /// The basis to return for calls that no rule or guardian applies to.
    pub(in crate::call) unconcerned: Mutex<Option<PolicyBasis>>,
    /// How often it was asked for a verdict.
    pub(in crate::call) asked: AtomicUsize,
    /// The only hook that the verdict is for; all others are allowed.
    pub(in crate::call) only: Mutex<Option<Hook>>,
    /// The hooks that it was asked about, with what it was shown.
    pub(in crate::call) seen: Mutex<Vec<(Hook, Value)>>,
}

#[async_trait]
impl Guardian for FixedGuardian {
    async fn unconcerned(&self, _: &TenantId, _: &Subject<'_>, _: Freshness) -> Result<Option<PolicyBasis>, Refusal> {
        Ok(*self.unconcerned.lock().unwrap())
    }

    async fn judge(&self, hooked: &Hooked<'_>) -> Result<Ruling, Refusal> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let hook = hooked.event.hook;
        self.seen.lock().unwrap().push((hook, hooked.event.content.to_json()));
        let is_meant = self.only.lock().unwrap().is_none_or(|only| only == hook);
        let verdict = self.verdict.lock().unwrap().clone().filter(|_| is_meant).unwrap_or_else(Verdict::allow);
        Ok(Ruling { verdict, decision: None, basis: PolicyBasis::default(), lacks_secrets: false })
    }

    async fn dry_run(&self, hooked: &Hooked<'_>) -> Result<(Verdict, Vec<String>), Refusal> {
        Ok((self.judge(hooked).await?.verdict, Vec::new()))
    }
}

/// Gives the same reply to every request, and keeps the requests; without a reply it refuses.
#[derive(Default)]
pub(in crate::call) struct FixedApprover {
    pub(in crate::call) reply: Mutex<Option<ApprovalOutcome>>,
    pub(in crate::call) asked: Mutex<Vec<Ask>>,
}

#[async_trait]
impl Approver for FixedApprover {
    async fn approve(&self, ask: Ask, asked: Asked<'_>, _: Gone) -> Result<ApprovalOutcome, Refusal> {
        asked(&ask.approval);
        self.asked.lock().unwrap().push(ask);
        let reply = self.reply.lock().unwrap().clone();
        reply.ok_or_else(|| Refusal::new(Code::ApprovalDenied, "the approver denied this call"))
    }

    fn resolved(&self, _: &Approval) {}

    fn standing(&self, _: &Approval, _: &StandingRequest) -> Result<(Coverage, Reach), String> {
        Err("nothing stands here".to_owned())
    }

    fn covering(&self, _: &[StandingApproval], _: &Covered<'_>) -> Result<Vec<StandingApprovalId>, String> {
        Err("nothing stands here".to_owned())
    }

    fn protects(&self, _: &Covered<'_>) -> Option<String> {
        None
    }

    fn present(&self, _: &Approval, _: &[StandingApproval]) -> Presentation {
        let risk = Risk { level: RiskLevel::High, notes: Vec::new() };
        Presentation { risk, parts: Vec::new(), offers: Vec::new(), no_offer_reason: None }
    }

    fn attach(&self, _: &TenantId) -> Attached {
        Box::new(())
    }

    async fn close(&self) {}
}
