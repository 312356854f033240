//! Calls for the rules: an agent with its key, grants with rates, and the commands that the gate sends for them.

use serde_json::json;
use std::sync::Arc;
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::{
    Admission, Admit, CallLimits, Consent, Freshness, HeldGrant, InvocationFilter, PageRequest, ReportInvocation,
    Settle,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::{Constraints, Cost};
use toolgate_model::context::GrantContext;
use toolgate_model::grant::Grant;
use toolgate_model::hook::{CallTrace, ToolReturned};
use toolgate_model::id::{GrantId, InvocationId, KeyId};
use toolgate_model::invocation::{IdempotencyKey, Invocation, InvocationStatus};
use toolgate_model::principal::{Principal, PrincipalId};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

/// The timeout of a call in the tests, in seconds.
pub const DEADLINE: u64 = 60;

/// An agent that calls, with the key that it shows.
#[derive(Clone)]
pub struct Caller {
    pub tenant: TestTenant,
    pub agent: PrincipalId,
    /// The key that it shows.
    pub key: KeyId,
}

impl Caller {
    /// An agent in its own tenant.
    pub async fn new(fixture: &LedgerFixture) -> Self {
        Self::of(&fixture.tenant().await, "billing").await
    }

    /// An agent of this tenant.
    pub async fn of(tenant: &TestTenant, name: &str) -> Self {
        let agent = tenant.agent(name).await;
        let key = tenant.key(&agent, &format!("key of {name} in {}", tenant.id)).await.id;
        Self { tenant: tenant.clone(), agent, key }
    }

    /// The same agent at another replica.
    pub async fn at_replica(&self, fixture: &LedgerFixture) -> Self {
        Self { tenant: self.tenant.through(fixture.replica().await), ..self.clone() }
    }

    /// A direct grant on its own credential with this hourly limit.
    pub async fn grant(&self, per_hour: impl Into<Option<u64>>) -> Grant {
        let credential = self.tenant.credential().await;
        let mut grant = self.tenant.new_grant(&credential, &self.agent);
        grant.authority.constraints.max_invocations_per_hour = per_hour.into();
        self.tenant.store_grant(grant).await.unwrap()
    }

    /// A grant delegated to a worker that allows so many calls in an hour.
    pub async fn delegate(&self, source: &Grant, per_hour: impl Into<Option<u64>>) -> Grant {
        let mut command = self.tenant.delegation(source, "worker");
        command.request.constraints =
            Constraints { max_invocations_per_hour: per_hour.into(), ..Constraints::default() };
        self.tenant.ledger.delegate_grant(command).await.unwrap()
    }

    /// A grant as it is now, with all that a call through it needs.
    pub async fn held_grant(&self, grant: GrantId) -> std::sync::Arc<HeldGrant> {
        self.tenant.ledger.held_grant(&self.tenant.id, grant).await.unwrap().expect("a grant of this tenant")
    }

    /// The command for a call through this grant, decided on the present state. It expires with the grant or the
    /// credential.
    pub async fn call(&self, grant: &Grant) -> Admit {
        let held_grant = self.held_grant(grant.id).await;
        let lineage = held_grant.lineage.ancestors().iter().chain([held_grant.lineage.grant()]);
        let invocation = self.invocation(grant);
        let limits = self.limits(&grant.agent).await;
        let governing = held_grant.coordinators.iter().filter_map(|coordinator| coordinator.reservation());
        let governing: Vec<_> = governing.collect();
        Admit {
            audit: self.tenant.audit_of(&self.agent),
            key: self.key,
            inputs: None,
            actor_revision: self.registered(&self.agent).await.map_or(0, |actor| actor.revision),
            agent: self.registered(&grant.agent).await,
            invocation,
            bucket: None,
            consent: Consent::default(),
            action: None,
            approval_digest: None,
            generation: held_grant.generation,
            usable_until: held_grant.effective.expires_at,
            lineage: lineage.map(|one| (one.id, one.authority.constraints.max_invocations_per_hour)).collect(),
            credential: Some((held_grant.credential.id, held_grant.credential.version)),
            registry: None,
            work_revision: self.work_revision().await,
            task: None,
            policies: self.policies().await,
            counts: None,
            run: None,
            limits: limits.revision,
            reservations: limits.reservations.into_iter().chain(governing).collect(),
            decision: None,
            marks: None,
            request_digest: None,
            deadline: self.tenant.later(DEADLINE),
            detached: None,
        }
    }

    /// The budgets and stops that concern an agent.
    pub async fn limits(&self, agent: &PrincipalId) -> CallLimits {
        let (ledger, id) = (&self.tenant.ledger, &self.tenant.id);
        let held = ledger.held_grants(id, agent, self.tenant.now(), Freshness::Newest).await.unwrap();
        (*held.limits).clone()
    }

    /// The revision of the tenant's coordinated work.
    pub async fn work_revision(&self) -> u64 {
        let (ledger, id) = (&self.tenant.ledger, &self.tenant.id);
        ledger.held_grants(id, &self.agent, self.tenant.now(), Freshness::Newest).await.unwrap().work_revision
    }

    /// The revision of the tenant's policies.
    async fn policies(&self) -> u64 {
        let (ledger, id) = (&self.tenant.ledger, &self.tenant.id);
        ledger.policies(id, self.tenant.now(), Freshness::Newest).await.unwrap().revision
    }

    /// The revision of a registered principal.
    pub async fn registered(&self, principal: &PrincipalId) -> Option<Arc<Principal>> {
        let found = self.tenant.ledger.principal(&self.tenant.id, principal).await.unwrap();
        found.filter(|principal| principal.removed_at.is_none()).map(Arc::new)
    }

    /// The report of a call that was made elsewhere through this grant.
    pub async fn report(&self, grant: &Grant, invocation: Invocation) -> ReportInvocation {
        let held_grant = self.held_grant(grant.id).await;
        let lineage = held_grant.lineage.ancestors().iter().chain([held_grant.lineage.grant()]);
        ReportInvocation {
            audit: self.tenant.audit_of(&invocation.actor),
            lineage: lineage.map(|grant| (grant.id, grant.authority.constraints.max_invocations_per_hour)).collect(),
            credential: held_grant.credential.id,
            invocation,
        }
    }

    /// A call under an idempotency key and for a request of this digest.
    pub async fn call_keyed(&self, grant: &Grant, key: &str, digest: &str) -> Admit {
        keyed(self.call(grant).await, key, digest)
    }

    /// The record of a call that arrives now.
    pub fn invocation(&self, grant: &Grant) -> Invocation {
        let now = self.tenant.now();
        let parameters = json!({"amount": 1200, "currency": "eur"});
        Invocation {
            id: InvocationId::new(now, random().expect("random bytes")),
            tenant: self.tenant.id.clone(),
            grant: Some(grant.id),
            agent: grant.agent.clone(),
            actor: self.agent.clone(),
            service: Some(grant.service.clone()),
            tool: "charges.create".into(),
            version: None,
            status: InvocationStatus::Running,
            error: None,
            parameters: Arc::new(parameters.as_object().cloned().unwrap()),
            arguments_hash: "a1".repeat(32).into(),
            fingerprint: Some("f2".repeat(32).into()),
            http_status: None,
            cost: Cost::from_dollars(0.02),
            cost_basis: None,
            duration_ms: None,
            idempotency_key: None,
            context: GrantContext::default(),
            trace: CallTrace { by_agent: true, ..CallTrace::default() },
            reported: false,
            created_at: now,
        }
    }

    /// Has a call admitted.
    pub async fn send(&self, call: Admit) -> Admission {
        self.tenant.ledger.admit(Arc::new(call)).await.unwrap()
    }

    /// Admits a call through this grant, decided on the present state.
    pub async fn admit(&self, grant: &Grant) -> Admission {
        self.send(self.call(grant).await).await
    }

    /// Has a call admitted that nothing is in the way of.
    pub async fn running(&self, grant: &Grant) -> Admit {
        let call = self.call(grant).await;
        assert_eq!(self.send(call.clone()).await, Admission::Admitted);
        call
    }

    /// The command that settles this call as executed, with this result.
    pub fn settlement(&self, call: &Admit, result: &str) -> Settle {
        let mut invocation = call.invocation.clone();
        invocation.status = InvocationStatus::Success;
        invocation.http_status = Some(200);
        invocation.duration_ms = Some(42);
        Settle {
            audit: self.tenant.audit_of(&self.agent),
            returned: ToolReturned::ok(&invocation, 42),
            reserved: call.invocation.cost,
            accounts: Vec::new(),
            invocation,
            stored_result: Some(result.to_owned()),
            never_sent: false,
            decision: None,
            detached: None,
        }
    }

    /// Settles this call as executed, with this result.
    pub async fn settle(&self, call: &Admit, result: &str) {
        self.tenant.ledger.settle(Arc::new(self.settlement(call, result))).await.unwrap();
    }

    /// The record of a call.
    pub async fn record(&self, id: InvocationId) -> Option<Invocation> {
        self.tenant.ledger.invocation(&self.tenant.id, id).await.unwrap()
    }

    /// The records of all calls of the tenant, newest first.
    pub async fn records(&self) -> Vec<Invocation> {
        let page = PageRequest::first(PageRequest::LIMIT);
        self.tenant.ledger.invocations(&self.tenant.id, InvocationFilter::default(), page).await.unwrap().items
    }
}

/// The same decision for another call.
pub fn another(call: &Admit) -> Admit {
    let mut another = call.clone();
    another.invocation.id = InvocationId::new(call.audit.time, random().expect("random bytes"));
    another
}

/// The call under an idempotency key, for a request of this digest.
pub fn keyed(mut call: Admit, key: &str, digest: &str) -> Admit {
    call.invocation.idempotency_key = Some(IdempotencyKey::parse(key).unwrap());
    call.request_digest = Some(digest.to_owned());
    call
}

/// The refusal of an admission, which must have this code.
pub fn refusal_of(admission: Admission, code: Code) -> Refusal {
    match admission {
        Admission::Refused(refusal) if refusal.code() == code => refusal,
        other => panic!("expected {}, and it was {other:?}", code.as_str()),
    }
}
