//! Automatic delegation (RFC-0014 §5.2): a task that its coordinator assigns comes with the least grants that its agent
//! lacks for it, bound to the task.

use toolgate_gate::ports::ledger::Undelegated;
use toolgate_model::constraint::Constraints;
use toolgate_model::grant::{DelegationDepth, DelegationRequest, Grant, Lineage};
use toolgate_model::id::GrantId;
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;
use toolgate_model::work::{MissingAccess, Task, ToolRequirement, match_requirements};

use super::access::HeldIntent;
use super::agent_access;
use crate::operation::Operation;
use crate::operation::administration::Entitled;
use crate::operation::grants::{Delegation, delegate};
use crate::operation::principals::ReadPrincipal;
use crate::sql::Failure;
use crate::transaction::Transaction;

/// Delegates what the agent needs for the task and does not hold, if a coordinator has `auto_delegate`.
pub async fn delegate_for<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    held: &HeldIntent,
    task: &Task,
    agent: &PrincipalId,
) -> Result<(Vec<Grant>, Vec<Undelegated>), Failure> {
    let (mut delegated, mut undelegated) = (Vec::new(), Vec::new());
    let Some(delegator) = held.delegating().filter(|delegator| *delegator != agent) else {
        return Ok((delegated, undelegated));
    };
    let own = agent_access::for_task(transaction, agent, task, by.time).await?;
    let context = task.context();
    let needed = task.details.requires_tools.iter().filter(|requirement| {
        let report = match_requirements(std::slice::from_ref(*requirement), &own, &context);
        report.met.is_empty()
    });
    let needed: Vec<&ToolRequirement> = needed.collect();
    let services = needed.iter().map(|requirement| &requirement.service);
    let sources = agent_access::usable(transaction, &by.tenant, delegator, services, by.time).await?;
    let by_coordinator = Delegating { agent: delegator, is_permitted: may_delegate(transaction, by, delegator).await? };
    for requirement in needed {
        match delegate_one(transaction, by, &by_coordinator, &sources, (task, agent), requirement).await? {
            Ok(grant) => delegated.push(grant),
            Err(reason) => undelegated.push(Undelegated {
                missing: MissingAccess {
                    service: requirement.service.clone(),
                    scopes: requirement.scopes.iter().cloned().collect(),
                },
                reason,
            }),
        }
    }
    Ok((delegated, undelegated))
}

/// The coordinator's agent, whose grants are delegated.
struct Delegating<'a> {
    agent: &'a PrincipalId,
    is_permitted: bool,
}

/// Whether this agent may delegate its grants.
async fn may_delegate<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    agent: &PrincipalId,
) -> Result<bool, Failure> {
    if *agent == by.actor {
        return Ok(by.may(Permission::DelegateTools));
    }
    let found = ReadPrincipal { tenant: by.tenant.clone(), id: agent.clone() }.run(transaction).await?;
    let found = found.filter(|principal| principal.removed_at.is_none());
    Ok(found.is_some_and(|principal| principal.permissions.has(Permission::DelegateTools)))
}

/// Delegates from the best source; otherwise returns why none can be used.
async fn delegate_one<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    delegator: &Delegating<'_>,
    sources: &[Lineage],
    (task, agent): (&Task, &PrincipalId),
    requirement: &ToolRequirement,
) -> Result<Result<Grant, String>, Failure> {
    let Delegating { agent: holder, is_permitted } = *delegator;
    if !is_permitted {
        return Ok(Err(format!("`{holder}` does not have the permission {}", Permission::DelegateTools)));
    }
    if requirement.scopes.is_empty() {
        return Ok(Err("the requirement names no scopes; delegate a grant yourself".to_owned()));
    }
    let context = task.context();
    let mut fitting: Vec<_> = sources
        .iter()
        .filter(|source| source.grant().service == requirement.service)
        .map(|source| (source, source.effective()))
        .filter(|(_, effective)| {
            requirement.scopes.beyond(&effective.scopes).is_empty()
                && effective.delegatable
                && effective.delegation_depth.below().is_some()
                && effective.context.allows(&context)
        })
        .collect();
    // The least first: the fewest scopes, then the soonest expiry.
    fitting.sort_by_key(|(source, effective)| {
        (effective.scopes.iter().count(), effective.expires_at.is_none(), effective.expires_at, source.grant().id)
    });
    let mut reason = format!("`{holder}` holds no grant that it can delegate for this");
    for (source, effective) in fitting {
        let command = Delegation {
            id: GrantId::new(by.time, toolgate_gate::ports::entropy::random_for_id()?),
            source: source.grant().id,
            target: agent,
            granted_by: holder,
            request: DelegationRequest {
                scopes: requirement.scopes.clone(),
                constraints: Constraints::default(),
                context: context.clone(),
                delegatable: Some(false),
                delegation_depth: Some(DelegationDepth::Limited(0)),
                expires_at: end(effective.expires_at, task.deadline),
            },
        };
        match delegate(transaction, by, command).await {
            Ok(grant) => return Ok(Ok(grant)),
            Err(Failure::Refused(refusal)) => reason = refusal.reason().to_owned(),
            Err(failure) => return Err(failure),
        }
    }
    Ok(Err(reason))
}

/// The end of the source, or the deadline if it is sooner.
fn end(source: Option<Timestamp>, deadline: Option<Timestamp>) -> Option<Option<Timestamp>> {
    match (source, deadline) {
        (Some(source), Some(deadline)) if source <= deadline => None,
        (_, Some(deadline)) => Some(Some(deadline)),
        (_, None) => None,
    }
}
