//! Budgets that come to their end, and calls that are stopped.

use serde::{Deserialize, Serialize};

use crate::principal::{PrincipalId, TenantId};
use crate::spending::{Account, Budget, Limit, Used};
use crate::text::Line;
use crate::time::Timestamp;

/// A budget has reached the share at which it warns, or has refused a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetReached {
    /// The kind of the account: `agent`, `tenant` or `coordinator`.
    pub account: String,
    /// Whose account it is; absent for the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    pub calls: u64,
    pub cost_usd: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_calls: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_cost_usd: Option<f64>,
    /// `day` or `total`.
    pub period: String,
    /// When the day began; absent for a total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_start: Option<Timestamp>,
}

impl BudgetReached {
    pub fn new(account: &Account, limit: &Limit, used: Used, day: Option<Timestamp>) -> Self {
        Self {
            account: account.kind().as_str().to_owned(),
            account_id: account.id().map(str::to_owned),
            calls: used.calls,
            cost_usd: used.dollars(),
            limit_calls: limit.max_calls,
            limit_cost_usd: limit.max_cost.map(crate::constraint::Cost::dollars),
            period: account.period().to_owned(),
            period_start: day,
        }
    }
}

/// The calls of an agent, of a tenant or of the whole gate were stopped, or resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallsStopped {
    /// The agent; absent for a tenant and for the whole gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Line>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TenantUpdated {
    /// `null` if it has none.
    pub budget: Option<Budget>,
    pub tenant_id: TenantId,
}
