//! Budgets, and stopping and resuming calls.

use std::time::Duration;

use toolgate_api::reply::NextCursor;
use toolgate_api::spending::{
    BudgetPage, BudgetPeriod, BudgetUse, ListBudgets, ResumeCalls, ResumedCalls, StopCalls, StopRequest, StoppedCalls,
};
use toolgate_gate::ports::ledger;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Cost;
use toolgate_model::spending::StopScope;

use super::error::Denied;
use crate::mount::TypedRequest;
use crate::parameters::page;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) async fn list(request: TypedRequest<ListBudgets>) -> Result<BudgetPage, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    let page = page(query.limit, query.cursor)?;
    let page = app.gate.administration.budgets(&caller, query.agent_id, page).await?;
    let budgets = page.items.into_iter().map(shown).collect();
    Ok(BudgetPage { budgets, next_cursor: NextCursor(page.next) })
}

pub(super) async fn stop(request: TypedRequest<StopCalls>) -> Result<StoppedCalls, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let (scope, reason) = (scope(&body)?, body.reason);
    let stopped = app.gate.administration.stop_calls(&caller, scope, reason).await?;
    Ok(StoppedCalls {
        changed: stopped.changed,
        cancelled_approvals: stopped.cancelled_approvals,
        cancelled_calls: stopped.cancelled_calls,
        in_flight: stopped.in_flight,
    })
}

pub(super) async fn resume(request: TypedRequest<ResumeCalls>) -> Result<ResumedCalls, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let (scope, reason) = (scope(&body)?, body.reason);
    let resumed = app.gate.administration.resume_calls(&caller, scope, reason).await?;
    Ok(ResumedCalls { changed: resumed.changed })
}

fn scope(request: &StopRequest) -> Result<StopScope, Refusal> {
    match (&request.agent, &request.tenant, request.all) {
        (Some(agent), None, false) => Ok(StopScope::Agent(agent.clone())),
        (None, Some(tenant), false) => Ok(StopScope::Tenant(tenant.clone())),
        (None, None, true) => Ok(StopScope::Gate),
        _ => {
            let reason = "must have exactly one of `agent`, `tenant` and `all`";
            Err(Refusal::new(Code::InvalidField, reason).with("path", "agent"))
        }
    }
}

fn shown(budget: ledger::BudgetUse) -> BudgetUse {
    let ledger::BudgetUse { account, limit, used, since } = budget;
    let left = |max: Cost| Cost::from_micros(max.micros().saturating_sub(used.cost)).map(Cost::dollars);
    BudgetUse {
        period: if account.is_daily() { BudgetPeriod::Day } else { BudgetPeriod::Total },
        resets_at: account.is_daily().then(|| since.plus(DAY)),
        since,
        used_calls: used.calls,
        limit_calls: limit.max_calls,
        remaining_calls: limit.max_calls.map(|max| max.saturating_sub(used.calls)),
        used_cost_usd: used.dollars(),
        limit_cost_usd: limit.max_cost.map(Cost::dollars),
        remaining_cost_usd: limit.max_cost.and_then(left),
        warn_at_percent: limit.warn_at_percent,
        account_id: account.id().map(str::to_owned),
        account: account.kind(),
    }
}
