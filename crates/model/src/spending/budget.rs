//! Budgets of agents and tenants, with their JSON form.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::{Account, Limit, Reservation};
use crate::constraint::Cost;
use crate::principal::PrincipalId;

/// When a budget says nothing about it.
const WARN_AT_PERCENT: u8 = 80;

/// How many calls an agent or a tenant may make and what they may cost. Days are those of UTC; totals count from the time
/// at which they were first set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub calls_per_day: Option<u64>,
    pub cost_per_day: Option<Cost>,
    pub calls_total: Option<u64>,
    pub cost_total: Option<Cost>,
    pub warn_at_percent: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BudgetError {
    #[error("a budget has at least one limit: calls_per_day, cost_per_day_usd, calls_total or cost_total_usd")]
    Empty,
    #[error("warn_at_percent is between 1 and 100")]
    WarnAt,
    #[error("an amount is a non-negative number of US dollars with at most six decimal places")]
    Amount,
    #[error("a number of calls is at most 1000000000000")]
    Calls,
}

/// The JSON form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    #[serde(default, deserialize_with = "stated", skip_serializing_if = "Option::is_none")]
    calls_per_day: Option<u64>,
    #[serde(default, deserialize_with = "stated", skip_serializing_if = "Option::is_none")]
    cost_per_day_usd: Option<f64>,
    #[serde(default, deserialize_with = "stated", skip_serializing_if = "Option::is_none")]
    calls_total: Option<u64>,
    #[serde(default, deserialize_with = "stated", skip_serializing_if = "Option::is_none")]
    cost_total_usd: Option<f64>,
    #[serde(default = "usual_warning")]
    warn_at_percent: u8,
}

/// A member that is there has a value: `null` is none.
fn stated<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn usual_warning() -> u8 {
    WARN_AT_PERCENT
}

impl Budget {
    /// More calls than anybody makes; also keeps every number exact as a JSON number.
    const MOST_CALLS: u64 = 1_000_000_000_000;

    /// A budget with no limit, from which one is built.
    pub fn unlimited() -> Self {
        Self {
            calls_per_day: None,
            cost_per_day: None,
            calls_total: None,
            cost_total: None,
            warn_at_percent: WARN_AT_PERCENT,
        }
    }

    /// The limit of a day; `None` if there is none.
    pub fn daily(&self) -> Option<Limit> {
        self.limit(self.calls_per_day, self.cost_per_day)
    }

    /// The limit of the total; `None` if there is none.
    pub fn total(&self) -> Option<Limit> {
        self.limit(self.calls_total, self.cost_total)
    }

    fn limit(&self, max_calls: Option<u64>, max_cost: Option<Cost>) -> Option<Limit> {
        let limit = Limit { max_calls, max_cost, warn_at_percent: self.warn_at_percent };
        (max_calls.is_some() || max_cost.is_some()).then_some(limit)
    }

    /// What each call of this agent reserves.
    pub fn of_agent(&self, agent: &PrincipalId) -> Vec<Reservation> {
        self.reservations(|| Account::Agent(agent.clone()), || Account::AgentTotal(agent.clone()))
    }

    /// What each call in the tenant reserves.
    pub fn of_tenant(&self) -> Vec<Reservation> {
        self.reservations(|| Account::Tenant, || Account::TenantTotal)
    }

    fn reservations(&self, day: impl Fn() -> Account, total: impl Fn() -> Account) -> Vec<Reservation> {
        let day = self.daily().map(|limit| Reservation { account: day(), limit });
        let total = self.total().map(|limit| Reservation { account: total(), limit });
        day.into_iter().chain(total).collect()
    }

    fn check(self) -> Result<Self, BudgetError> {
        if self.daily().is_none() && self.total().is_none() {
            return Err(BudgetError::Empty);
        }
        if !(1..=100).contains(&self.warn_at_percent) {
            return Err(BudgetError::WarnAt);
        }
        if self.calls_per_day.into_iter().chain(self.calls_total).any(|calls| calls > Self::MOST_CALLS) {
            return Err(BudgetError::Calls);
        }
        Ok(self)
    }
}

impl Serialize for Budget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Form {
            calls_per_day: self.calls_per_day,
            cost_per_day_usd: self.cost_per_day.map(Cost::dollars),
            calls_total: self.calls_total,
            cost_total_usd: self.cost_total.map(Cost::dollars),
            warn_at_percent: self.warn_at_percent,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = Form::deserialize(deserializer)?;
        let cost = |dollars: Option<f64>| {
            let read = |dollars| Cost::from_dollars(dollars).ok_or_else(|| D::Error::custom(BudgetError::Amount));
            dollars.map(read).transpose()
        };
        let budget = Self {
            calls_per_day: form.calls_per_day,
            cost_per_day: cost(form.cost_per_day_usd)?,
            calls_total: form.calls_total,
            cost_total: cost(form.cost_total_usd)?,
            warn_at_percent: form.warn_at_percent,
        };
        budget.check().map_err(D::Error::custom)
    }
}
