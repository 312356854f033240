//! Budgets with what was used, and stopping and resuming calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::spending::AccountKind;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::{Cursor, Limit};
use crate::reply::{Dollars, NextCursor};

endpoints! {
    tag "budgets" = "Budgets with what was used, and stopping and resuming calls.";

    /// List budgets with what was used and what remains
    ///
    /// Every principal may read its own and those of coordinators that it is; those of all agents, of all coordinators and
    /// of the tenant need `agents.manage` or `audit.read`.
    ListBudgets = GET "/api/v1/budgets" as "list_budgets" {
        query: BudgetQuery,
        reply: OK BudgetPage = "A page of budgets: those of the tenant first, then those of its agents and of coordinators, by id.",
    }

    /// Stop the calls of an agent, of a tenant or of the whole gate
    ///
    /// Every admission after this responds is refused as `STOPPED`, on every replica. Waiting calls are cancelled, and
    /// calls in flight where their source can be. Needs `agents.manage`; a tenant needs a caller that is not an agent, and
    /// another tenant and the whole gate need `tenants.manage` in the tenant `default`.
    StopCalls = POST "/api/v1/stop" as "stop_calls" {
        body: StopRequest = {"agent": "billing", "reason": "it pays everything twice"},
        reply: OK StoppedCalls = "What was stopped.",
    }

    /// Resume what was stopped
    ///
    /// Needs the same as stopping. No principal resumes itself.
    ResumeCalls = POST "/api/v1/resume" as "resume_calls" {
        body: StopRequest = {"agent": "billing"},
        reply: OK ResumedCalls = "What was resumed.",
    }
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetQuery {
    /// Only the budget of this agent and those of coordinators that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetPage {
    pub budgets: Vec<BudgetUse>,
    pub next_cursor: NextCursor,
}

/// One account of a budget.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetUse {
    pub account: AccountKind,
    /// The agent or the coordinator; `null` for the tenant.
    pub account_id: Option<String>,
    pub period: BudgetPeriod,
    /// When it began to count.
    pub since: Timestamp,
    /// When the period ends and the usage is reset; `null` for a total.
    pub resets_at: Option<Timestamp>,
    /// The calls of the period, admitted ones included.
    pub used_calls: u64,
    pub limit_calls: Option<u64>,
    pub remaining_calls: Option<u64>,
    /// What the calls of the period have cost, with what those in flight have reserved.
    #[schemars(with = "Dollars")]
    pub used_cost_usd: f64,
    #[schemars(with = "Option<Dollars>")]
    pub limit_cost_usd: Option<f64>,
    #[schemars(with = "Option<Dollars>")]
    pub remaining_cost_usd: Option<f64>,
    #[schemars(range(min = 1, max = 100))]
    pub warn_at_percent: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum BudgetPeriod {
    Day,
    Total,
}

/// Exactly one of `agent`, `tenant` and `all`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<PrincipalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// All tenants.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Shown in refusals and in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Line>,
}

impl RequestBody for StopRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StoppedCalls {
    /// Whether it was not stopped before.
    pub changed: bool,
    /// The approvals that were cancelled with the calls that waited for them.
    pub cancelled_approvals: u64,
    /// The detached calls that were cancelled before they were admitted.
    pub cancelled_calls: u64,
    /// The calls that were being executed. They are cut off where their source can be, and settled.
    pub in_flight: u64,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResumedCalls {
    /// Whether it was stopped before.
    pub changed: bool,
}
