//! Costs of an intent: those that agents record besides the costs of their calls, which are the records of the calls.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::text_choice::choices;
use crate::constraint::Cost;
use crate::id::{CostId, IntentId, TaskId};
use crate::principal::{PrincipalId, TenantId};
use crate::time::Timestamp;

choices! {
    CostKind {
        Tokens = "tokens",
        ApiCall = "api_call",
        Compute = "compute",
        Custom = "custom",
        /// A tool call of the gate.
        ExternalTool = "external_tool",
    }
}

/// A recorded cost.
#[derive(Debug, Clone, PartialEq)]
pub struct CostEntry {
    pub id: CostId,
    pub tenant: TenantId,
    pub intent: IntentId,
    pub task: Option<TaskId>,
    pub agent: PrincipalId,
    pub kind: CostKind,
    /// In millionths of the unit.
    pub amount_micros: u64,
    pub unit: String,
    pub provider: Option<String>,
    pub metadata: Map<String, Value>,
    pub recorded_at: Timestamp,
}

impl CostEntry {
    /// The amount in dollars, if the unit is money.
    pub fn usd(&self) -> Option<Cost> {
        dollars(self.amount_micros, &self.unit)
    }
}

/// Millionths of a unit in dollars, if the unit is money.
pub fn dollars(amount_micros: u64, unit: &str) -> Option<Cost> {
    match unit.to_ascii_lowercase().as_str() {
        "usd" | "dollars" => Cost::from_micros(amount_micros),
        "cents" | "usd_cents" => Cost::from_micros(amount_micros / 100),
        "usd_micros" => Cost::from_micros(amount_micros / 1_000_000),
        _ => None,
    }
}

/// Sums in millionths of a dollar. Recorded amounts in other units are in none of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CostSummary {
    pub total: u64,
    pub by_kind: BTreeMap<CostKind, u64>,
    pub by_agent: BTreeMap<PrincipalId, u64>,
    pub by_task: BTreeMap<String, u64>,
    pub by_service: BTreeMap<String, u64>,
}

impl CostSummary {
    pub fn add(&mut self, kind: CostKind, agent: &PrincipalId, task: Option<&str>, service: Option<&str>, micros: u64) {
        let add = |sum: &mut u64| *sum = sum.saturating_add(micros);
        add(&mut self.total);
        add(self.by_kind.entry(kind).or_default());
        add(self.by_agent.entry(agent.clone()).or_default());
        if let Some(task) = task {
            add(self.by_task.entry(task.to_owned()).or_default());
        }
        if let Some(service) = service {
            add(self.by_service.entry(service.to_owned()).or_default());
        }
    }
}
