//! Costs of intents.

use serde_json::{Map, Value};
use toolgate_model::id::{CostId, IntentId, TaskId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::work::limits::DOCUMENT_BYTES;
use toolgate_model::work::{CostEntry, CostKind};

use super::{WorkAdministration, invalid, require_line, require_size};
use crate::identify::Caller;
use crate::ports::ledger::{IntentCosts, PageRequest, RecordCost, Viewer};
use crate::refusal::Refusal;

/// A cost to record.
pub struct NewCost {
    pub intent: IntentId,
    pub task: Option<TaskId>,
    /// Defaults to the caller.
    pub agent: Option<PrincipalId>,
    pub kind: CostKind,
    /// In millionths of the unit.
    pub amount_micros: u64,
    pub unit: String,
    pub provider: Option<String>,
    pub metadata: Map<String, Value>,
}

impl WorkAdministration {
    /// Records a cost that is not one of a call: those are recorded with the calls.
    pub async fn record_cost(&self, caller: &Caller, new: NewCost) -> Result<CostEntry, Refusal> {
        let agent = new.agent.unwrap_or_else(|| caller.id().clone());
        caller.require_acting_for(&agent)?;
        if new.kind == CostKind::ExternalTool {
            return Err(invalid("cost_type", "costs of external tools are recorded with the calls"));
        }
        require_line("unit", &new.unit)?;
        if let Some(provider) = &new.provider {
            require_line("provider", provider)?;
        }
        require_size("metadata", &new.metadata, DOCUMENT_BYTES)?;
        // As a number of the unit it must be exact in JSON.
        if new.amount_micros > 1_000_000_000_000_000 {
            return Err(invalid("amount", "`amount` must be at most a billion"));
        }
        let audit = caller.mandate(self.clock.now());
        let entry = CostEntry {
            id: self.ids.make(audit.time(), CostId::new)?,
            tenant: audit.tenant().clone(),
            intent: new.intent,
            task: new.task,
            agent,
            kind: new.kind,
            amount_micros: new.amount_micros,
            unit: new.unit,
            provider: new.provider,
            metadata: new.metadata,
            recorded_at: audit.time(),
        };
        self.costs.record_cost(RecordCost { audit, entry: entry.clone() }).await?;
        Ok(entry)
    }

    /// Returns the newest costs of an intent, with the sums of all.
    pub async fn intent_costs(&self, caller: &Caller, intent: IntentId) -> Result<IntentCosts, Refusal> {
        let viewer = Viewer::of(caller);
        let found = self.costs.intent_costs(caller.tenant(), intent, &viewer, PageRequest::LIMIT).await?;
        found.ok_or_else(|| Refusal::no_intent(intent))
    }
}
