//! Which coordinators govern the use of a grant: those of its agent and of every agent above it in its lineage, unless the
//! grant that the coordinator's agent holds is bound to another intent. What a caller claims plays no part, and neither
//! does a context that was added below the coordinator: nobody escapes guardrails by narrowing a context.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::context::GrantContext;
use toolgate_model::grant::Lineage;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::work::Coordinator;

use super::coordinator_rows;
use crate::operation::listing::padded;
use crate::sql::{Failure, Value};
use crate::transaction::Transaction;

/// The coordinators that these agents are and that have not ended.
pub async fn of_agents<'a, T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    agents: impl Iterator<Item = &'a PrincipalId>,
) -> Result<Vec<Arc<Coordinator>>, Failure> {
    let agents: BTreeSet<&PrincipalId> = agents.collect();
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    let (places, mut parameters) = padded(agents.into_iter().map(Value::from).collect());
    parameters.push(Value::from(tenant));
    let sql = format!(
        "SELECT {} FROM coordinators WHERE agent IN ({places}) AND tenant = ${} AND ended_at IS NULL ORDER BY id",
        coordinator_rows::COLUMNS,
        parameters.len()
    );
    let rows = transaction.query(&sql, &parameters).await?;
    rows.iter().map(|row| Ok(Arc::new(coordinator_rows::read(row)?))).collect()
}

/// Those of the coordinators that govern the use of a grant.
pub fn of_lineage(coordinators: &[Arc<Coordinator>], lineage: &Lineage) -> Vec<Arc<Coordinator>> {
    let governing = coordinators.iter().filter(|one| level_of(one, lineage).is_some());
    governing.map(Arc::clone).collect()
}

/// The level of the highest grant of the lineage that the coordinator's agent holds and the coordinator governs.
fn level_of(coordinator: &Coordinator, lineage: &Lineage) -> Option<u32> {
    let mut context = GrantContext::default();
    for grant in lineage.ancestors().iter().chain([lineage.grant()]) {
        context = grant.authority.context.within(&context);
        if grant.agent == coordinator.agent && coordinator.governs(&context) {
            return Some(grant.level);
        }
    }
    None
}

/// Refuses a delegation of this grant that a guardrail of a governing coordinator does not allow.
pub async fn require_delegable<T: Transaction>(transaction: &mut T, lineage: &Lineage) -> Result<(), Failure> {
    let source = lineage.grant();
    let agents = lineage.ancestors().iter().chain([source]).map(|grant| &grant.agent);
    for coordinator in of_agents(transaction, &source.tenant, agents).await? {
        let Some(level) = level_of(&coordinator, lineage) else { continue };
        if !coordinator.guardrails.allows_service(&source.service) {
            return Err(service_denied(&coordinator, source.service.as_str()).into());
        }
        let depth = source.level + 1 - level;
        if let Some(most) = coordinator.guardrails.max_delegation_depth.filter(|most| depth > *most) {
            let reason = format!(
                "this would be level {depth} below the grant of coordinator {}, and its `max_delegation_depth` is {most}",
                coordinator.id
            );
            return Err(denied(&coordinator, reason, "max_delegation_depth").into());
        }
    }
    Ok(())
}

fn service_denied(coordinator: &Coordinator, service: &str) -> Refusal {
    let reason = format!("coordinator {} may not use the service `{service}`", coordinator.id);
    denied(coordinator, reason, "services")
}

/// The refusal by a guardrail.
pub fn denied(coordinator: &Coordinator, reason: String, guardrail: &str) -> Refusal {
    Refusal::new(Code::GuardrailDenied, reason).with("coordinator_id", coordinator.id).with("guardrail", guardrail)
}
