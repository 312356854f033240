//! The active policies, and the schema for rules.

use std::sync::Arc;

use toolgate_api::policies::{ActivePolicies, PolicySchema, PolicyVersionRules, ShowPolicies, ShowPolicySchema};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::guard::PolicySetVersion;

use super::shown;
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::router::App;

pub(super) async fn show(request: TypedRequest<ShowPolicies>) -> Result<ActivePolicies, Denied> {
    let TypedRequest { app, caller, .. } = request;
    let policies = app.gate.policies.active_policies(&caller).await?;
    Ok(match &policies.active {
        Some(active) => with_rules(&app, Arc::clone(active)).await?.into(),
        None => ActivePolicies::default(),
    })
}

pub(super) async fn schema(request: TypedRequest<ShowPolicySchema>) -> Result<PolicySchema, Denied> {
    let TypedRequest { app, caller, .. } = request;
    Ok(PolicySchema { schema: app.gate.policies.policy_schema(&caller).await? })
}

/// A version with its rules. Those are read from its files on a blocking thread: many take a while.
pub(super) async fn with_rules(app: &App, version: Arc<PolicySetVersion>) -> Result<PolicyVersionRules, Refusal> {
    let record = (&*version).into();
    let gate = Arc::clone(&app.gate);
    let rules = tokio::task::spawn_blocking(move || gate.policies.policy_rules(&version)).await;
    let rules = rules.map_err(|_| Refusal::new(Code::Internal, "the rules could not be read; see the gate's log"))?;
    Ok(PolicyVersionRules { version: record, rules: rules.iter().map(shown::rule).collect() })
}
