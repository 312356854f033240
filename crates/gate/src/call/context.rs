//! The context of a call: ids of this gate are checked against the ledger and completed, so that records and costs have
//! the whole context. Other ids belong to another coordination system and are only compared with the binding of the grant.

use std::sync::Arc;

use toolgate_model::context::GrantContext;
use toolgate_model::id::TaskId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;
use toolgate_model::work::{AgentWork, BindingError, BoundContext};

use super::{Call, Pipeline};
use crate::ports::ledger::{Freshness, GrantLookup, HeldGrants};
use crate::refusal::{Code, Refusal, Stage};

#[cfg(test)]
mod tests;

/// The task of this gate that a call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallTask {
    pub(crate) id: TaskId,
    /// When the agent loses it.
    pub(crate) until: Option<Timestamp>,
}

impl Pipeline {
    /// The call with its whole context; `None` if its context names nothing of this gate.
    pub(super) async fn in_context(&self, call: &Call, freshness: Freshness) -> Result<Option<Arc<Call>>, Refusal> {
        if !call.context.names_work() {
            return Ok(None);
        }
        let now = self.clock.now();
        let bound = bind(&*self.held_grants, call.caller.tenant(), &call.agent, &call.context, (now, freshness)).await;
        let BoundContext { context, task, until } = bound.map_err(|refusal| refusal.at(Stage::Authorize))?;
        let task = task.map(|id| CallTask { id, until });
        Ok(Some(Arc::new(Call { context, task, ..call.clone() })))
    }
}

/// Checks the context of a call of an agent. The same refusal for everything that the agent may not claim.
pub(crate) async fn bind(
    held_grants: &dyn GrantLookup,
    tenant: &TenantId,
    agent: &PrincipalId,
    context: &GrantContext,
    (now, freshness): (Timestamp, Freshness),
) -> Result<BoundContext, Refusal> {
    let held = held_grants.held_grants(tenant, agent, now, freshness).await?;
    let work = work(&held);
    let bound = match work.bind(context, now) {
        Err(_) if work.is_cut() => held_grants.named_work(tenant, agent, context).await?.bind(context, now),
        bound => bound,
    };
    bound.map_err(|error| mismatch(&error))
}

fn work(held: &HeldGrants) -> &AgentWork {
    static NONE: AgentWork = AgentWork::NONE;
    held.work.as_deref().unwrap_or(&NONE)
}

fn mismatch(error: &BindingError) -> Refusal {
    Refusal::new(Code::GrantContextMismatch, error.to_string()).with("path", format!("context.{}", error.part))
}
