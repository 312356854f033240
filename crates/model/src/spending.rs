//! Spending: how many calls an account has made and what they cost, and the limits on both. Budgets and the counts that
//! policies read use the same accounts.

use std::fmt;

use crate::constraint::Cost;
use crate::hook::RunId;
use crate::principal::{PrincipalId, TenantId};
use crate::text::Line;
use crate::time::Timestamp;

pub use self::budget::{Budget, BudgetError};
pub use self::stated::{CostBasis, StatedCost, charge};
pub(crate) use self::stated::{micros, micros_of_number};

mod budget;
mod stated;

#[cfg(test)]
mod tests;

/// What calls are counted in, inside a tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    /// What an agent does in a day.
    Agent(PrincipalId),
    /// What an agent does altogether.
    AgentTotal(PrincipalId),
    /// What all agents of the tenant do in a day.
    Tenant,
    /// What all agents of the tenant do altogether.
    TenantTotal,
    /// The calls of a run that this principal named.
    Run { owner: PrincipalId, run: RunId },
    /// Everything that is governed by a coordinator, by its id.
    Coordinator(String),
}

/// What an account belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    Agent,
    Coordinator,
    Run,
    Tenant,
}

impl AccountKind {
    /// The displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Coordinator => "coordinator",
            Self::Run => "run",
            Self::Tenant => "tenant",
        }
    }
}

impl Account {
    /// Whether it begins anew every day. Other accounts have no end.
    pub fn is_daily(&self) -> bool {
        matches!(self, Self::Agent(_) | Self::Tenant)
    }

    /// The kind, as shown to callers and in the log.
    pub fn kind(&self) -> AccountKind {
        match self {
            Self::Agent(_) | Self::AgentTotal(_) => AccountKind::Agent,
            Self::Tenant | Self::TenantTotal => AccountKind::Tenant,
            Self::Run { .. } => AccountKind::Run,
            Self::Coordinator(_) => AccountKind::Coordinator,
        }
    }

    /// `day` or `total`.
    pub fn period(&self) -> &'static str {
        if self.is_daily() { "day" } else { "total" }
    }

    /// What it belongs to; `None` for the tenant.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Agent(agent) | Self::AgentTotal(agent) => Some(agent.as_str()),
            Self::Tenant | Self::TenantTotal => None,
            Self::Run { run, .. } => Some(run.as_str()),
            Self::Coordinator(id) => Some(id),
        }
    }

    /// The stored form; `None` if it is not one. Identifiers contain no slash.
    pub fn parse(text: &str) -> Option<Self> {
        let agent = |text| PrincipalId::parse(text).ok();
        Some(match text.split_once('/') {
            None if text == "tenant" => Self::Tenant,
            None => return None,
            Some(("agent", id)) => Self::Agent(agent(id)?),
            Some(("total", "tenant")) => Self::TenantTotal,
            Some(("total", of)) => Self::AgentTotal(agent(of.strip_prefix("agent/")?)?),
            Some(("coordinator", id)) => Self::Coordinator(id.to_owned()),
            Some(("run", of)) => {
                let (owner, run) = of.split_once('/')?;
                Self::Run { owner: agent(owner)?, run: RunId::parse(run).ok()? }
            }
            Some(_) => return None,
        })
    }
}

/// The stored form.
impl fmt::Display for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(agent) => write!(formatter, "agent/{agent}"),
            Self::AgentTotal(agent) => write!(formatter, "total/agent/{agent}"),
            Self::Tenant => formatter.write_str("tenant"),
            Self::TenantTotal => formatter.write_str("total/tenant"),
            Self::Run { owner, run } => write!(formatter, "run/{owner}/{}", run.as_str()),
            Self::Coordinator(id) => write!(formatter, "coordinator/{id}"),
        }
    }
}

/// How much an account may be used. An absent limit does not limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub max_calls: Option<u64>,
    pub max_cost: Option<Cost>,
    /// The share of a limit at which a warning is recorded.
    pub warn_at_percent: u8,
}

/// Why a call does not fit into an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    Calls {
        max: u64,
    },
    Cost {
        max: Cost,
    },
    /// Cost is limited, and nobody knows what the call costs.
    UnknownCost,
}

impl Limit {
    /// The first limit that one more call of at most this cost would exceed.
    pub fn excess(&self, used: Used, cost: Option<Cost>) -> Option<Excess> {
        if let Some(max) = self.max_calls.filter(|max| used.calls.saturating_add(1) > *max) {
            return Some(Excess::Calls { max });
        }
        let max = self.max_cost?;
        match cost {
            None => Some(Excess::UnknownCost),
            Some(cost) if used.cost.saturating_add(cost.micros()) > max.micros() => Some(Excess::Cost { max }),
            Some(_) => None,
        }
    }

    /// Whether this much reaches the share at which a warning is recorded.
    pub fn is_warning(&self, used: Used) -> bool {
        let reached = |used: u64, max: u64| {
            u128::from(used) * 100 >= u128::from(max) * u128::from(self.warn_at_percent) && used > 0
        };
        self.max_calls.is_some_and(|max| reached(used.calls, max))
            || self.max_cost.is_some_and(|max| reached(used.cost, max.micros()))
    }
}

/// How much an account was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    pub calls: u64,
    /// In millionths of a dollar.
    pub cost: u64,
}

impl Used {
    /// The cost as a JSON number.
    pub fn dollars(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "sums of costs stay far below 2^53 millionths")]
        let micros = self.cost as f64;
        micros / 1e6
    }
}

/// What an admission reserves: one call and its cost in this account, if the limit allows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub account: Account,
    pub limit: Limit,
}

impl Reservation {
    /// What a call reserves that a coordinator governs; `None` if the coordinator bounds neither calls nor costs.
    pub fn of_coordinator(id: &impl fmt::Display, max_calls: Option<u64>, max_cost: Option<Cost>) -> Option<Self> {
        let limit = Limit { max_calls, max_cost, warn_at_percent: 80 };
        let reservation = Self { account: Account::Coordinator(id.to_string()), limit };
        (max_calls.is_some() || max_cost.is_some()).then_some(reservation)
    }
}

/// That the calls of a principal, a tenant or the whole gate are stopped.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    pub at: Timestamp,
    pub by: PrincipalId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Line>,
}

/// What is stopped, or resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopScope {
    Agent(PrincipalId),
    Tenant(TenantId),
    /// All tenants.
    Gate,
}

impl StopScope {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::Tenant(_) => "tenant",
            Self::Gate => "all",
        }
    }
}
