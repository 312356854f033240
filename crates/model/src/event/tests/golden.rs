//! The bytes of every event type are what they have always been: old logs verify, and old events still hash the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::approval::{
    Approval, ApprovalRule, ApprovalSession, ApprovalStatus, AskReason, AskSource, Category, Channel, Coverage,
    Decision, Mode, Reach, SessionName, StandingApproval, Vote, Workspace,
};
use crate::certificate::{CertificateName, SpiffeId};
use crate::constraint::Cost;
use crate::credential::{AuthType, ServiceName};
use crate::descriptor::ToolId;
use crate::grant::DelegationDepth;
use crate::guard::{
    Dialect, FailureClass, GuardMode, GuardianRecord, Hook, HookDecision, Outcome, PolicyRef, Role, TraceIds,
    VerdictKind, WouldBe,
};
use crate::hook::{CallTrace, RunId, ToolCalled, ToolReturned, Transport};
use crate::id::{ApprovalId, CredentialId, GrantId, InvocationId, KeyId, SessionId, StandingApprovalId, VaultId};
use crate::invocation::{Invocation, InvocationStatus};
use crate::permission::{Permission, PermissionSet};
use crate::principal::PrincipalKind;
use crate::principal_scope::HeldScopes;
use crate::scope::{Scope, ScopeSet};
use crate::service::ServiceVersion;
use crate::text::Line;

mod budgets;
mod mounts;
mod stores;
mod tokens;
mod work;
mod workflows;

/// One event on each line, in the order of [`samples`].
const GOLDEN: &str = include_str!("golden.jsonl");

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_770_544_800_000 + millis).unwrap()
}

fn principal(id: &str) -> PrincipalId {
    PrincipalId::parse(id).unwrap()
}

fn grant(number: u8) -> GrantId {
    GrantId::new(at(0), [number; 10])
}

fn scopes() -> ScopeSet {
    ["charges.read", "charges.create"].iter().map(|scope| Scope::parse(scope).unwrap()).collect()
}

fn invocation() -> Invocation {
    Invocation {
        id: InvocationId::new(at(1), [3; 10]),
        tenant: TenantId::default_tenant(),
        grant: Some(grant(2)),
        agent: principal("ab"),
        actor: principal("somebody"),
        service: Some(ServiceName::parse("stripe").unwrap()),
        tool: "charges.create".into(),
        version: None,
        status: InvocationStatus::Success,
        error: None,
        parameters: Arc::new(
            json!({"b": "\u{1f600} \" \n", "a": [1, 2.50], "\u{e9}": null, "\u{fb33}": -0.5, "10": 1e30})
                .as_object()
                .cloned()
                .unwrap(),
        ),
        arguments_hash: "ab".repeat(32).into(),
        fingerprint: Some("cd".repeat(32).into()),
        http_status: Some(200),
        cost: Cost::from_dollars(0.02),
        cost_basis: None,
        duration_ms: Some(342),
        idempotency_key: None,
        context: GrantContext::default(),
        trace: CallTrace { run: Some(RunId::parse("run-1").unwrap()), by_agent: true, ..CallTrace::default() },
        reported: false,
        created_at: at(1),
    }
}

fn tool_invoked(invocation: &Invocation, returned: Option<ToolReturned>) -> EventPayload {
    EventPayload::ToolInvoked(Box::new(ToolInvoked {
        invocation_id: invocation.id,
        grant_id: invocation.grant,
        service: invocation.service.clone(),
        tool: invocation.tool.clone(),
        parameters_summary: Arc::clone(&invocation.parameters),
        arguments_hash: invocation.arguments_hash.clone(),
        status: invocation.status,
        error_code: invocation.error.as_ref().map(|error| error.code.clone()),
        http_status: invocation.http_status,
        duration_ms: invocation.duration_ms,
        cost: invocation.cost.into(),
        cost_basis: None,
        request_fingerprint: invocation.fingerprint.clone(),
        reported: invocation.reported,
        returned,
        trace_id: None,
    }))
}

fn calls() -> Vec<EventPayload> {
    let call = invocation();
    let other = Invocation {
        grant: None,
        service: None,
        status: InvocationStatus::Error,
        error: Some(crate::invocation::InvocationError { code: "SERVICE_ERROR".to_owned(), reason: "no".to_owned() }),
        parameters: Arc::default(),
        fingerprint: None,
        http_status: None,
        cost: None,
        cost_basis: None,
        duration_ms: None,
        trace: CallTrace { transport: Transport::Native, ..CallTrace::default() },
        ..invocation()
    };
    let reported = Invocation { reported: true, cost: Cost::from_dollars(3.0), ..invocation() };
    let called = |call: &Invocation, inputs| EventPayload::AgentToolCalled(Box::new(ToolCalled::of(call, inputs)));
    let denied = |call: &Invocation, returned| {
        EventPayload::ToolDenied(Box::new(ToolDenied {
            invocation_id: call.id,
            grant_id: call.grant,
            service: call.service.clone(),
            tool: call.tool.clone(),
            arguments_hash: call.arguments_hash.clone(),
            stage: "authorize".into(),
            error_code: "GRANT_NOT_FOUND".to_owned(),
            reason: "there is no grant for `charges.create`\u{7f}\u{1}".to_owned(),
            returned: Some(returned),
            trace_id: None,
        }))
    };
    let failed = |duration| ToolReturned::error(&other, "SERVICE_ERROR", "the \"service\" failed".to_owned(), duration);
    let session = SessionId::new(at(3), [4; 10]);
    let closed = |outcome| {
        let tool_id = "connector:a.b".to_owned();
        EventPayload::ToolSessionClosed(ToolSessionClosed { outcome, session_id: session, tool_id })
    };
    let codes = BTreeMap::from([("GRANT_REVOKED".to_owned(), 3), ("RATE_LIMITED".to_owned(), 9_007_199_254_740_993)]);
    vec![
        called(&call, None),
        called(&other, Some(json!({"z": 1, "\u{20ac}": [true, {"b": 1.0, "a": 18_446_744_073_709_551_615_u64}]}))),
        tool_invoked(&call, Some(ToolReturned::ok(&call, 12))),
        tool_invoked(&other, Some(failed(Some(7)))),
        tool_invoked(&Invocation { status: InvocationStatus::Unknown, ..other.clone() }, Some(failed(None))),
        tool_invoked(&reported, None),
        denied(&call, ToolReturned::forbidden(&call)),
        denied(&other, ToolReturned::rate_limited(&other)),
        EventPayload::CallDetached(CallDetached {
            invocation_id: call.id,
            tool: "stripe.charges.create".to_owned(),
            arguments_hash: call.arguments_hash.to_string(),
        }),
        EventPayload::AuthorizationDecided(AuthorizationDecided {
            principal: principal("billing"),
            action: "tools:invoke".into(),
            allowed: false,
            resource: "stripe.charges.create".to_owned(),
            reason: "GRANT_NOT_FOUND".to_owned(),
        }),
        EventPayload::ToolDenialsCounted(ToolDenialsCounted::new(principal("billing"), codes, at(1), at(2))),
        EventPayload::ToolForbidden(ToolForbidden::at_load(
            Some(&principal("ab")),
            &ToolId::parse("connector:stripe.charges.create").unwrap(),
        )),
        EventPayload::ToolForbidden(ToolForbidden::at_load(None, &ToolId::parse("connector:stripe.refunds").unwrap())),
        EventPayload::ToolSessionOpened(ToolSessionOpened { session_id: session, tool_id: "connector:a.b".to_owned() }),
        closed(SessionOutcome::Completed),
        closed(SessionOutcome::Failed),
    ]
}

fn authority() -> Vec<EventPayload> {
    let (vault, credential) = (VaultId::new(at(0), [1; 10]), CredentialId::new(at(0), [1; 10]));
    let key = KeyId::new(at(0), [1; 10]);
    let service = ServiceName::parse("stripe").unwrap();
    let version = ServiceVersion::parse("2024-01").unwrap();
    let permissions: PermissionSet = [Permission::InvokeTools, Permission::ActAs].into_iter().collect();
    let held = HeldScopes::from_stored(["mail:*".to_owned(), "a@b".to_owned()]);
    let spiffe = SpiffeId::parse("spiffe://example.org/billing").unwrap();
    let updated = |changed: &[&str], scopes, permissions| {
        EventPayload::AgentUpdated(AgentUpdated {
            agent_id: principal("billing"),
            budget: None,
            revision: 2,
            changed: changed.iter().map(|name| (*name).to_owned()).collect(),
            scopes,
            permissions,
        })
    };
    let delegated = |depth: DelegationDepth| {
        EventPayload::GrantDelegated(GrantDelegated {
            grant_id: grant(3),
            source_grant_id: grant(2),
            target_agent_id: principal("sub"),
            scopes: scopes(),
            delegation_depth: depth.to_option(),
        })
    };
    let created = |expires_at| {
        EventPayload::GrantCreated(GrantCreated {
            grant_id: grant(2),
            credential_id: credential,
            agent_id: principal("billing"),
            scopes: scopes(),
            expires_at,
        })
    };
    let key_created = |expires_at, certificate, token_subject| {
        let principal_id = principal("billing");
        EventPayload::KeyCreated(KeyCreated { certificate, expires_at, key_id: key, principal_id, token_subject })
    };
    let changed = |change, subject: Option<&str>, note: Option<&str>| {
        EventPayload::PoliciesChanged(PoliciesChanged {
            version: 3,
            change,
            subject: subject.map(str::to_owned),
            rules: 9,
            shadowed: 1,
            digest: "ef".repeat(32),
            note: note.map(str::to_owned),
        })
    };
    let gone = LedgerRollbackAccepted {
        tenant_id: Some(TenantId::parse("acme").unwrap()),
        known_size: Some(9),
        known_root: Some(Hash::from_bytes([7; 32])),
        ..LedgerRollbackAccepted::default()
    };
    let older =
        LedgerRollbackAccepted { found_size: Some(3), found_root: Some(Hash::from_bytes([8; 32])), ..gone.clone() };
    vec![
        EventPayload::AgentCreated(AgentCreated {
            agent_id: principal("billing"),
            kind: PrincipalKind::Agent,
            permissions,
        }),
        EventPayload::AgentRemoved(AgentRemoved { agent_id: principal("billing"), revoked_keys: 1, revoked_grants: 2 }),
        updated(&["name", "labels"], None, None),
        updated(&["scopes", "permissions"], Some(held), Some(PermissionSet::of_an_agent())),
        EventPayload::CredentialCreated(CredentialCreated {
            credential_id: credential,
            vault_id: vault,
            service: service.clone(),
            auth_type: AuthType::OAuth2ClientCredentials,
        }),
        EventPayload::CredentialExpired(CredentialExpired { credential_id: credential }),
        EventPayload::CredentialRevoked(CredentialRevoked {
            credential_id: credential,
            reason: "leaked".to_owned(),
            affected_grants_count: 4,
        }),
        EventPayload::CredentialRotated(CredentialRotated {
            credential_id: credential,
            rotated_by: PrincipalId::system(),
        }),
        created(None),
        created(Some(at(60_000))),
        delegated(DelegationDepth::Limited(1)),
        delegated(DelegationDepth::Unlimited),
        EventPayload::GrantExpired(GrantExpired { grant_id: grant(2) }),
        EventPayload::GrantResumed(GrantResumed { grant_id: grant(2) }),
        EventPayload::GrantRevoked(GrantRevoked { grant_id: grant(2), reason: "done".to_owned(), cascade_count: 1 }),
        EventPayload::GrantSuspended(GrantSuspended { grant_id: grant(2), reason: "holiday".to_owned() }),
        key_created(None, None, None),
        key_created(Some(at(60_000)), Some(CertificateName::SpiffeId(spiffe).to_string()), None),
        EventPayload::KeyRevoked(KeyRevoked { key_id: key, principal_id: principal("billing") }),
        changed(PolicyChangeKind::Applied, None, None),
        changed(PolicyChangeKind::Promoted, Some("no-sundays"), Some("as agreed")),
        changed(PolicyChangeKind::RolledBack, Some("2"), None),
        EventPayload::ServiceApplied(ServiceApplied {
            service: service.clone(),
            version: version.clone(),
            tools: 3,
            digest: "ab".repeat(32),
        }),
        EventPayload::ServiceRemoved(ServiceRemoved { service, version }),
        EventPayload::TenantCreated(TenantCreated { tenant_id: TenantId::parse("acme").unwrap() }),
        EventPayload::VaultCreated(VaultCreated { vault_id: vault, owner_id: principal("admin") }),
        EventPayload::VaultDeleted(VaultDeleted { vault_id: vault, revoked_credentials: 1, revoked_grants: 2 }),
        EventPayload::VaultRekeyed(VaultRekeyed { key_id: "k2".to_owned(), rewrapped: 7 }),
        EventPayload::LedgerRollbackAccepted(LedgerRollbackAccepted::default()),
        EventPayload::LedgerRollbackAccepted(older),
        EventPayload::LedgerRollbackAccepted(gone),
    ]
}

fn hooks() -> Vec<EventPayload> {
    let policy = |id: &str| PolicyRef { id: id.to_owned(), version: "3".to_owned() };
    let bare = GuardianRecord {
        guardian: "scanner".to_owned(),
        dialect: Dialect::Joch,
        mode: GuardMode::Shadow,
        verdict: None,
        outcome: Outcome::FailedOpen,
        reason: None,
        policies: Vec::new(),
        failure: Some(FailureClass::IdMismatch),
        latency_us: 250_004,
    };
    let full = GuardianRecord {
        guardian: "policy".to_owned(),
        dialect: Dialect::Native,
        mode: GuardMode::Enforce,
        verdict: Some(VerdictKind::Deny),
        outcome: Outcome::Enforced,
        reason: Some("not on \"Sundays\"".to_owned()),
        policies: vec![policy("no-sundays"), policy("no-mail")],
        failure: None,
        latency_us: 21,
    };
    let quiet = HookDecision {
        hook: Hook::Message(Role::User),
        dialect: Dialect::Aos,
        invocation: None,
        ids: TraceIds::default(),
        tool: None,
        guardians: Vec::new(),
        shadow: Vec::new(),
        hash_before: "ab".repeat(32),
        hash_after: None,
        effective: VerdictKind::Allow,
        approval: None,
        policy_version: None,
        facts: None,
    };
    let told = HookDecision {
        hook: Hook::ToolCallRequest,
        dialect: Dialect::Native,
        invocation: Some(invocation().id),
        ids: TraceIds {
            execution: Some("exec-9".to_owned()),
            session: Some("s-1".to_owned()),
            turn: Some("t".to_owned()),
            step: Some("st".to_owned()),
            request: Some("r-1".to_owned()),
        },
        tool: Some("stripe.charges.create".to_owned()),
        guardians: vec![full, bare],
        shadow: vec![WouldBe { policy: policy("no-mondays"), verdict: VerdictKind::Ask }],
        hash_before: "ab".repeat(32),
        hash_after: Some("cd".repeat(32)),
        effective: VerdictKind::Modify,
        approval: Some(ApprovalId::new(at(5), [5; 10])),
        policy_version: Some(3),
        facts: Some(json!({"marks": ["private"], "agent": {"id": "billing", "labels": []}})),
    };
    let nothing = HookDecision { facts: Some(Value::Null), ..quiet.clone() };
    [quiet, told, nothing].into_iter().map(|decision| EventPayload::HookDecided(Box::new(decision))).collect()
}

fn approval() -> Approval {
    Approval {
        id: ApprovalId::new(at(5), [5; 10]),
        tenant: TenantId::default_tenant(),
        status: ApprovalStatus::Pending,
        invocation: invocation().id,
        call: None,
        agent: principal("billing"),
        actor: principal("billing"),
        actor_is_person: false,
        tool: "stripe.charges.create".to_owned(),
        external: false,
        detached: false,
        category: Category::Mcp,
        description: "creates a charge".to_owned(),
        arguments: Some(json!({"amount": 1})),
        original_arguments: None,
        action: None,
        digest: "dd".repeat(32),
        reasons: vec![
            AskReason { source: AskSource::Tool, text: "it says so".to_owned() },
            AskReason { source: AskSource::Guardian, text: "a rule says so".to_owned() },
        ],
        rule: ApprovalRule { approvers: 2, ..ApprovalRule::default() },
        coverable: true,
        session: None,
        votes: Vec::new(),
        answer: None,
        reason: None,
        notice: None,
        standing: None,
        created_at: at(5),
        expires_at: at(300_005),
        resolved_at: None,
    }
}

fn approvals() -> Vec<EventPayload> {
    let vote = |decision, channel| Vote {
        by: principal("ann"),
        decision,
        channel,
        reason: None,
        answer: None,
        wish: None,
        at: at(6),
    };
    let session =
        ApprovalSession { owner: principal("host"), name: SessionName::parse("s-1").unwrap(), workspace: None };
    let standing_id = StandingApprovalId::new(at(7), [6; 10]);
    let standing = StandingApproval {
        id: standing_id,
        tenant: TenantId::default_tenant(),
        agent: principal("billing"),
        tool: "shell.run".to_owned(),
        external: false,
        action: None,
        coverage: Coverage::Prefix(vec!["git".to_owned(), "status".to_owned()]),
        reach: Reach::Workspace(Workspace::parse("/work").unwrap()),
        source: approval().id,
        created_by: principal("ann"),
        created_at: at(7),
        expires_at: Some(at(60_000)),
        max_uses: Some(5),
        used: 2,
        last_used_at: None,
        revoked_at: None,
        revoked_by: None,
    };
    let everywhere = StandingApproval {
        coverage: Coverage::Tool,
        reach: Reach::User,
        expires_at: None,
        max_uses: None,
        ..standing.clone()
    };
    let in_session = StandingApproval {
        reach: Reach::Session { owner: principal("host"), name: SessionName::parse("s-1").unwrap() },
        ..standing.clone()
    };
    let ended = |status, votes: Vec<Vote>, reason: Option<&str>| Approval {
        status,
        votes,
        reason: reason.map(str::to_owned),
        resolved_at: Some(at(9)),
        ..approval()
    };
    let approve = || vec![vote(Decision::Approve, Channel::Terminal), vote(Decision::Approve, Channel::Web)];
    let covering = Approval { standing: Some(standing_id), ..ended(ApprovalStatus::Approved, approve(), Some("go")) };
    let overriding = vec![vote(Decision::Override, Channel::Host)];
    vec![
        EventPayload::approval_requested(&approval()),
        EventPayload::approval_requested(&Approval { session: Some(session), ..approval() }),
        EventPayload::approval_counted(&Approval { votes: vec![vote(Decision::Approve, Channel::Http)], ..approval() }),
        EventPayload::approval_ended(&ended(ApprovalStatus::Approved, approve(), None)),
        EventPayload::approval_ended(&covering),
        EventPayload::approval_ended(&ended(ApprovalStatus::Approved, overriding, Some("the shop is down"))),
        EventPayload::approval_ended(&ended(
            ApprovalStatus::Denied,
            vec![vote(Decision::Deny, Channel::Web)],
            Some("no"),
        )),
        EventPayload::approval_ended(&ended(ApprovalStatus::TimedOut, approve(), Some("approval timed out"))),
        EventPayload::approval_ended(&ended(ApprovalStatus::Orphaned, Vec::new(), Some("the process died"))),
        EventPayload::approval_ended(&ended(ApprovalStatus::Cancelled, Vec::new(), Some("the caller is gone"))),
        EventPayload::standing_approval_created(&standing),
        EventPayload::standing_approval_created(&everywhere),
        EventPayload::standing_approval_created(&in_session),
        EventPayload::standing_approval_revoked(&standing),
        EventPayload::standing_approval_revoked(&StandingApproval { revoked_by: Some(principal("ann")), ..standing }),
        EventPayload::StandingApprovalUsed(StandingApprovalUsed {
            standing_approval_id: standing_id,
            invocation_id: invocation().id,
            tool: "shell.run".to_owned(),
            used: 3,
        }),
        EventPayload::ApprovalModeChanged(ApprovalModeChanged {
            owner: principal("host"),
            session: SessionName::parse("s-1").unwrap(),
            from: Mode::Default,
            to: Mode::AutoEdit,
        }),
    ]
}

/// Every event type, with and without what may be missing, in envelopes that are full and empty in turn.
fn samples() -> Vec<Event> {
    let all = [
        calls(),
        authority(),
        hooks(),
        approvals(),
        mounts::mounts(),
        tokens::tokens(),
        budgets::budgets(),
        work::work(),
        workflows::workflows(),
        stores::stores(),
    ]
    .concat();
    all.into_iter()
        .zip(0..)
        .map(|(payload, number)| {
            let full = number % 2 == 0;
            let context = json!({"intent_id": "i", "plan_id": "p", "task_id": "t"});
            Event {
                id: EventId::new(at(100), [number; 10]),
                tenant: TenantId::default_tenant(),
                actor: principal("admin"),
                agent: full.then(|| principal("billing")),
                context: if full { serde_json::from_value(context).unwrap() } else { GrantContext::default() },
                run: full.then(|| "run-1".to_owned()),
                time: at(i64::from(number)),
                payload,
            }
        })
        .collect()
}

#[test]
fn every_event_is_written_as_it_always_was() {
    let written: Vec<String> =
        samples().iter().map(|event| String::from_utf8(event.to_canonical().unwrap()).unwrap()).collect();
    assert_eq!(written, GOLDEN.lines().collect::<Vec<_>>());
}

#[test]
fn every_event_is_read_as_it_was_written() {
    for (event, canonical) in samples().into_iter().zip(GOLDEN.lines()) {
        let read = Event::read(canonical).unwrap();
        assert_eq!(read.payload.kind(), event.payload.kind(), "{canonical}");
        assert_eq!(String::from_utf8(read.to_canonical().unwrap()).unwrap(), canonical);
        let stored = StoredEvent::read(canonical, 7).unwrap();
        assert_eq!((&stored.event, &stored.whole["sequence"]), (&read, &json!(7)));
        assert_eq!(to_canonical(stored.data()), to_canonical(&json!(read.payload)));
    }
}

#[test]
fn every_event_that_names_a_call_is_about_that_call_and_its_tool() {
    for canonical in GOLDEN.lines() {
        let event = StoredEvent::read(canonical, 7).unwrap();
        let data = event.data();
        let call = data.get("invocation_id").or(data.get("callId")).and_then(Value::as_str);
        let payload = &event.event.payload;
        assert_eq!(payload.call().as_deref(), call, "{canonical}");
        if call.is_some() {
            let tool = data.get("tool").or(data.get("toolName")).and_then(Value::as_str).unwrap();
            assert!(payload.tool().unwrap().ends_with(tool), "{canonical}");
        }
    }
}

#[test]
fn every_event_type_has_a_sample_and_a_row_in_the_documentation() {
    let page = include_str!("../../../../../docs/audit.md");
    for kind in EventKind::ALL {
        assert!(samples().iter().any(|event| event.payload.kind() == Some(*kind)), "add a sample of {kind:?}");
        assert!(page.contains(&format!("`{}`", kind.as_str())), "docs/audit.md does not have {}", kind.as_str());
        assert_eq!(EventKind::parse(kind.as_str()), Some(*kind));
    }
    assert_eq!(EventKind::parse("approval.given"), None);
}
