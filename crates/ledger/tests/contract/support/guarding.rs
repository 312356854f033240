//! Guardian decisions and policies for tests.

use toolgate_gate::ports::ledger::{ActivePolicies, ApplyPolicies, Freshness, PolicyChange};
use toolgate_model::guard::{
    Dialect, GuardMode, GuardianRecord, Hook, HookDecision, Outcome, PolicyFile, PolicyRef, PolicySetVersion, TraceIds,
    VerdictKind,
};
use toolgate_model::id::InvocationId;
use toolgate_testkit::ledger_fixture::TestTenant;

/// One file with this text.
pub fn files(text: &str) -> Vec<PolicyFile> {
    vec![PolicyFile { name: "main.cedar".to_owned(), text: text.to_owned() }]
}

/// The command that applies one file with this text.
pub fn application(tenant: &TestTenant, text: &str) -> ApplyPolicies {
    ApplyPolicies {
        audit: tenant.audit(),
        change: PolicyChange::Applied,
        files: files(text),
        note: None,
        expected: None,
        rules: 2,
        shadowed: 1,
    }
}

/// Applies one file with this text.
pub async fn apply(tenant: &TestTenant, text: &str) -> PolicySetVersion {
    tenant.ledger.apply_policies(application(tenant, text)).await.unwrap()
}

/// The policies as they are now.
pub async fn policies(tenant: &TestTenant) -> std::sync::Arc<ActivePolicies> {
    tenant.ledger.policies(&tenant.id, tenant.now(), Freshness::Newest).await.unwrap()
}

/// A decision of the gate's own policies at this hook.
pub fn decision(hook: Hook, effective: VerdictKind, invocation: Option<InvocationId>) -> Box<HookDecision> {
    let record = GuardianRecord {
        guardian: "policy".to_owned(),
        dialect: Dialect::Native,
        mode: GuardMode::Enforce,
        verdict: Some(effective),
        outcome: Outcome::Enforced,
        reason: Some("not on a Sunday".to_owned()),
        policies: vec![PolicyRef { id: "no-sundays".to_owned(), version: "3".to_owned() }],
        failure: None,
        latency_us: 17,
    };
    Box::new(HookDecision {
        hook,
        dialect: Dialect::Native,
        invocation,
        ids: TraceIds::default(),
        tool: Some("stripe.charges.create".to_owned()),
        guardians: vec![record],
        shadow: Vec::new(),
        hash_before: "b1".repeat(32),
        hash_after: None,
        effective,
        approval: None,
        policy_version: Some(3),
        facts: None,
    })
}
