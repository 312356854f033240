//! Costs of an intent. The cost of a call is the record of the call.

use async_trait::async_trait;
use toolgate_model::constraint::Cost;
use toolgate_model::id::{IntentId, InvocationId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;
use toolgate_model::work::{CostEntry, CostSummary};

use super::Viewer;
use crate::ports::ledger::Mandate;
use crate::refusal::Refusal;

#[async_trait]
pub trait Costs: Send + Sync {
    async fn record_cost(&self, command: RecordCost) -> Result<(), Refusal>;
    /// Returns the costs of an intent; `None` if the viewer does not see it.
    async fn intent_costs(
        &self,
        tenant: &TenantId,
        intent: IntentId,
        viewer: &Viewer,
        limit: u32,
    ) -> Result<Option<IntentCosts>, Refusal>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct RecordCost {
    pub audit: Mandate,
    pub entry: CostEntry,
}

/// The costs of an intent: the newest entries, and the sums of all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IntentCosts {
    /// Recorded, newest first.
    pub recorded: Vec<CostEntry>,
    /// Of calls, newest first.
    pub calls: Vec<CallCost>,
    pub summary: CostSummary,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CallCost {
    pub invocation: InvocationId,
    pub agent: PrincipalId,
    pub service: Option<String>,
    pub tool: String,
    /// As recorded with the call.
    pub task: Option<String>,
    pub cost: Cost,
    pub created_at: Timestamp,
}
