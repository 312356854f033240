//! What an intent costs.

use serde_json::{Map, Number};
use toolgate_api::work::costs::{CostEntry, CostList, CostSummary, ListCosts, RecordCost};
use toolgate_gate::authority::work::NewCost;
use toolgate_gate::ports::ledger::CallCost;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Cost;
use toolgate_model::credential::ServiceName;
use toolgate_model::id::{IntentId, TaskId};
use toolgate_model::work::{self, CostKind};

use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::parameters::id;

/// The unit of the cost of a call.
const CALL_UNIT: &str = "usd_micros";

pub(super) async fn list(request: TypedRequest<ListCosts>) -> Result<CostList, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let found = app.gate.work.intent_costs(&caller, path).await?;
    let calls = found.calls.into_iter().map(|call| of_call(path, call));
    let mut costs: Vec<CostEntry> = found.recorded.into_iter().map(recorded).chain(calls).collect();
    costs.sort_by(|one, other| other.recorded_at.cmp(&one.recorded_at).then_with(|| one.id.cmp(&other.id)));
    let summary = found.summary;
    let summary = CostSummary {
        total: summary.total,
        total_usd: Cost::from_micros(summary.total).map_or(0.0, Cost::dollars),
        by_type: summary.by_kind.into_iter().map(|(kind, sum)| (kind.to_string(), sum)).collect(),
        by_agent: summary.by_agent.into_iter().map(|(agent, sum)| (agent.to_string(), sum)).collect(),
        by_task: summary.by_task,
        by_service: summary.by_service,
    };
    Ok(CostList { costs, summary })
}

pub(super) async fn record(request: TypedRequest<RecordCost>) -> Result<CostEntry, Denied> {
    let TypedRequest { app, caller, path: intent, body, .. } = request;
    // The limits and the precision of an amount are those of money, whatever its unit.
    let amount = Cost::from_dollars(body.amount).ok_or_else(|| {
        let reason = "`amount` must be from 0 to a billion, with at most six decimal places";
        Refusal::new(Code::InvalidField, reason).with("path", "amount")
    })?;
    let new = NewCost {
        intent,
        task: body.task_id.as_deref().map(id).transpose()?,
        agent: body.agent_id,
        kind: body.cost_type,
        amount_micros: amount.micros(),
        unit: body.unit.to_string(),
        provider: body.provider.map(|provider| provider.as_str().to_owned()),
        metadata: body.metadata.unwrap_or_default(),
    };
    Ok(recorded(app.gate.work.record_cost(&caller, new).await?))
}

fn recorded(entry: work::CostEntry) -> CostEntry {
    CostEntry {
        id: entry.id.to_string(),
        intent_id: entry.intent,
        task_id: entry.task,
        amount_usd: entry.usd().map(Cost::dollars),
        agent_id: entry.agent,
        cost_type: entry.kind,
        amount: amount(entry.amount_micros),
        unit: entry.unit,
        service: None,
        tool: None,
        invocation_id: None,
        provider: entry.provider,
        metadata: entry.metadata,
        recorded_at: entry.recorded_at,
        recorded_at_again: entry.recorded_at,
    }
}

fn of_call(intent_id: IntentId, call: CallCost) -> CostEntry {
    CostEntry {
        id: call.invocation.to_string(),
        intent_id,
        task_id: call.task.and_then(|task| TaskId::parse(&task).ok()),
        agent_id: call.agent,
        cost_type: CostKind::ExternalTool,
        amount: Number::from(call.cost.micros()),
        unit: CALL_UNIT.to_owned(),
        amount_usd: Some(call.cost.dollars()),
        service: call.service.and_then(|service| ServiceName::parse(&service).ok()),
        tool: Some(call.tool),
        invocation_id: Some(call.invocation),
        provider: None,
        metadata: Map::new(),
        recorded_at: call.created_at,
        recorded_at_again: call.created_at,
    }
}

/// The Python client of OpenIntent counts in whole numbers.
fn amount(micros: u64) -> Number {
    if micros.is_multiple_of(1_000_000) {
        return Number::from(micros / 1_000_000);
    }
    let amount = Cost::from_micros(micros).map(Cost::dollars);
    amount.and_then(Number::from_f64).unwrap_or_else(|| Number::from(0))
}
