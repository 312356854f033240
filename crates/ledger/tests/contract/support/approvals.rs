//! Approvals for tests: a call that waits in some process, approvers, and what their decisions cover.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::{
    Admit, Consent, CreateKey, DecideApproval, EndApproval, Heartbeat, RequestApproval, RevokeStanding, UpdatePrincipal,
};
use toolgate_gate::refusal::Refusal;
use toolgate_model::approval::{
    Approval, ApprovalRule, ApprovalStatus, AskReason, AskSource, Category, Channel, Coverage, Decision, Reach,
    RequestedCoverage, StandingApproval, StandingRequest, Vote,
};
use toolgate_model::id::{ApprovalId, InvocationId, KeyId, ProcessId, StandingApprovalId};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::permission::Permission;
use toolgate_model::principal::{Principal, PrincipalChanges, PrincipalId};
use toolgate_model::principal_scope::HeldScopes;
use toolgate_testkit::ledger_fixture::{TestTenant, principal};

/// How long an approval of the tests can be decided, in seconds.
pub const WAIT: u64 = 300;
/// The tool that the calls of the tests are of.
pub const TOOL: &str = "stripe.charges.create";

/// The approvers of the tests.
const PEOPLE: [&str; 6] = ["alice", "billing", "bob", "carol", "host", "scheduler"];

pub fn process(tenant: &TestTenant) -> ProcessId {
    ProcessId::new(tenant.now(), random().expect("random bytes"))
}

/// An approval that is not stored: may `billing` make a charge?
pub fn question(tenant: &TestTenant) -> Approval {
    let now = tenant.now();
    Approval {
        id: ApprovalId::new(now, random().expect("random bytes")),
        tenant: tenant.id.clone(),
        status: ApprovalStatus::Pending,
        invocation: InvocationId::new(now, random().expect("random bytes")),
        call: None,
        agent: principal("billing"),
        actor: principal("billing"),
        actor_is_person: false,
        tool: TOOL.to_owned(),
        external: false,
        detached: false,
        category: Category::Mcp,
        description: "a charge of 12.00 EUR".to_owned(),
        arguments: Some(json!({"amount": 1200, "currency": "eur"})),
        original_arguments: None,
        action: None,
        digest: "d1".repeat(32),
        reasons: vec![AskReason { source: AskSource::Tool, text: "every call needs approval".to_owned() }],
        rule: ApprovalRule::default(),
        coverable: true,
        session: None,
        votes: Vec::new(),
        answer: None,
        reason: None,
        notice: None,
        standing: None,
        created_at: now,
        expires_at: tenant.later(WAIT),
        resolved_at: None,
    }
}

/// The same question with another rule.
pub fn under(rule: ApprovalRule, question: Approval) -> Approval {
    Approval { rule, ..question }
}

/// The rule that these groups must approve.
pub fn by_groups(groups: &[&str]) -> ApprovalRule {
    let groups: BTreeSet<String> = groups.iter().map(|group| (*group).to_owned()).collect();
    ApprovalRule { groups, ..ApprovalRule::default() }
}

/// Registers the possible approvers, so that a decision changes nothing but the approval.
pub async fn people(tenant: &TestTenant) {
    for person in PEOPLE {
        key_of(tenant, &principal(person)).await;
    }
    key_of(tenant, &tenant.administrator).await;
}

/// The command that stores an approval whose call waits in this process, for a tool that needs no grant.
pub fn requesting(tenant: &TestTenant, process: ProcessId, approval: Approval) -> RequestApproval {
    let audit = tenant.audit_of(&approval.agent);
    RequestApproval { audit, approval, process, grants: Vec::new(), most_of_agent: 2_000, parks: None }
}

/// Stores an approval whose call waits in this process.
pub async fn ask_in(tenant: &TestTenant, process: ProcessId, approval: Approval) -> Approval {
    people(tenant).await;
    let request = requesting(tenant, process, approval.clone());
    tenant.ledger.request_approval(request).await.unwrap();
    approval
}

/// Stores an approval whose call waits in a process that is alive as long as it can be decided.
pub async fn ask(tenant: &TestTenant, approval: Approval) -> Approval {
    let process = process(tenant);
    let heartbeat = Heartbeat { process, time: approval.expires_at, attended: Vec::new() };
    tenant.ledger.heartbeat(heartbeat).await.unwrap();
    ask_in(tenant, process, approval).await
}

/// An approval as it is now.
pub async fn now(tenant: &TestTenant, approval: &Approval) -> Approval {
    tenant.ledger.approval(&tenant.id, approval.id).await.unwrap().expect("an approval of this tenant")
}

/// A vote.
pub fn word(tenant: &TestTenant, approval: &Approval, by: &PrincipalId, decision: Decision) -> DecideApproval {
    DecideApproval {
        audit: tenant.audit_of(by),
        id: approval.id,
        vote: Vote {
            by: by.clone(),
            decision,
            channel: Channel::Http,
            reason: None,
            answer: None,
            wish: None,
            at: tenant.now(),
        },
        standing: None,
        notice: None,
        idempotency_key: None,
        request_digest: format!("{decision:?}"),
    }
}

/// The same word under an idempotency key.
pub fn named(mut word: DecideApproval, key: &str) -> DecideApproval {
    word.idempotency_key = Some(IdempotencyKey::parse(key).unwrap());
    word
}

/// Changes an existing principal.
pub async fn change(tenant: &TestTenant, person: &PrincipalId, changes: PrincipalChanges) {
    let now = tenant.ledger.principal(&tenant.id, person).await.unwrap().expect("a principal of this tenant");
    let (audit, id, expected_revision) = (tenant.audit(), person.clone(), now.revision);
    let command = UpdatePrincipal { audit, id, expected_revision, changes, unresolved: Vec::new() };
    tenant.ledger.update_principal(command).await.unwrap();
}

/// Gives a principal exactly these scopes.
pub async fn holds(tenant: &TestTenant, person: &PrincipalId, scopes: &[&str]) {
    let scopes = HeldScopes::from_stored(scopes.iter().map(|scope| (*scope).to_owned()));
    change(tenant, person, PrincipalChanges { scopes: Some(scopes), ..PrincipalChanges::default() }).await;
}

/// Casts a vote of an existing principal with a key.
pub async fn say(tenant: &TestTenant, mut word: DecideApproval) -> Result<Approval, Refusal> {
    let key = key_of(tenant, &word.vote.by).await;
    word.audit = tenant.mandate(&word.vote.by, key).await;
    tenant.ledger.decide_approval(word).await
}

/// A key of a principal, which is registered if needed.
pub async fn key_of(tenant: &TestTenant, person: &PrincipalId) -> KeyId {
    let stored = || async { tenant.ledger.keys(&tenant.id, person).await.unwrap().first().map(|key| key.id) };
    if let Some(key) = stored().await {
        return key;
    }
    // Others may be about to do the same.
    let permissions = [Permission::InvokeTools, Permission::DecideApprovals].into_iter().collect();
    let registration = tenant.registration(Principal { permissions, ..tenant.new_principal(person) });
    let _ = tenant.ledger.create_principal(registration).await;
    let key = tenant.new_key(person, &format!("the key of {person} in {}", tenant.id));
    let _ = tenant.ledger.create_key(CreateKey { audit: tenant.audit(), key }).await;
    stored().await.expect("a key")
}

pub async fn approve(tenant: &TestTenant, approval: &Approval, by: &str) -> Result<Approval, Refusal> {
    say(tenant, word(tenant, approval, &principal(by), Decision::Approve)).await
}

pub async fn deny(tenant: &TestTenant, approval: &Approval, by: &str) -> Result<Approval, Refusal> {
    say(tenant, word(tenant, approval, &principal(by), Decision::Deny)).await
}

pub async fn end(tenant: &TestTenant, approval: &Approval, status: ApprovalStatus) -> Result<Approval, Refusal> {
    let reason = "whoever waited is gone".to_owned();
    let audit = tenant.audit_of(&approval.agent);
    tenant.ledger.end_approval(EndApproval { audit, id: approval.id, status, reason }).await
}

/// A standing approval for all later calls of the tool, not stored.
pub fn everywhere(tenant: &TestTenant, approval: &Approval) -> StandingApproval {
    StandingApproval {
        id: StandingApprovalId::new(tenant.now(), random().expect("random bytes")),
        tenant: tenant.id.clone(),
        agent: approval.agent.clone(),
        tool: approval.tool.clone(),
        external: approval.external,
        action: approval.action.clone(),
        coverage: Coverage::Tool,
        reach: Reach::User,
        source: approval.id,
        created_by: tenant.administrator.clone(),
        created_at: tenant.now(),
        expires_at: None,
        max_uses: None,
        used: 0,
        last_used_at: None,
        revoked_at: None,
        revoked_by: None,
    }
}

/// The administrator's yes that covers later calls too.
pub fn always(tenant: &TestTenant, approval: &Approval, standing: StandingApproval) -> DecideApproval {
    let mut word = word(tenant, approval, &tenant.administrator, Decision::Approve);
    word.vote.wish = Some(StandingRequest {
        coverage: RequestedCoverage::Tool,
        reach: None,
        expires_in_seconds: None,
        max_uses: None,
    });
    word.standing = Some(standing);
    word
}

/// A standing approval of a tenant, from its own decision, modified before it is stored.
pub async fn standing(tenant: &TestTenant, change: impl FnOnce(&mut StandingApproval)) -> StandingApproval {
    let asked = ask(tenant, question(tenant)).await;
    let mut standing = everywhere(tenant, &asked);
    change(&mut standing);
    say(tenant, always(tenant, &asked, standing.clone())).await.unwrap();
    standing
}

/// A standing approval as it is now.
pub async fn standing_now(tenant: &TestTenant, standing: &StandingApproval) -> StandingApproval {
    tenant.ledger.standing(&tenant.id, standing.id).await.unwrap().expect("a standing approval of this tenant")
}

pub async fn revoke(tenant: &TestTenant, id: StandingApprovalId) -> Result<StandingApproval, Refusal> {
    tenant.ledger.revoke_standing(RevokeStanding { audit: tenant.audit(), id }).await
}

/// The call, based on this decision.
pub fn by_answer(mut call: Admit, approval: &Approval) -> Admit {
    call.consent = Consent { approval: Some(approval.id), ..Consent::default() };
    call.approval_digest = Some(approval.digest.clone());
    call
}

/// The call, resting on these standing approvals.
pub fn by_standing(mut call: Admit, standing: &[&StandingApproval]) -> Admit {
    call.consent = Consent { standing: standing.iter().map(|one| one.id).collect(), ..Consent::default() };
    call
}

/// So long after `WAIT` began that only this is left of it.
pub fn shortly_before_the_end(tenant: &TestTenant, left: Duration) {
    tenant.clock.advance(Duration::from_secs(WAIT) - left);
}
