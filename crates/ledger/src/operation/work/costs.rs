//! Costs of an intent: recorded ones, and those of its calls.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{CallCost, Costs, IntentCosts, Mandate, RecordCost, Viewer};
use toolgate_gate::refusal::Refusal;
use toolgate_model::constraint::Cost;
use toolgate_model::event::{EventPayload, WorkCostRecorded};
use toolgate_model::id::{CostId, IntentId, InvocationId, TaskId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::work::limits::COSTS;
use toolgate_model::work::{CostEntry, CostKind, CostSummary, IntentEventDetails, IntentEventKind, dollars};

use super::access::{hold, participates, sees};
use super::{Noted, number, require_below, task_rows};
use crate::ledger::{Engine, SqlLedger};
use crate::operation::Operation;
use crate::operation::administration::{Administration, Entitled};
use crate::operation::listing::Conditions;
use crate::sql::{Failure, Row, SqlError, json_text};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Costs for SqlLedger<E> {
    async fn record_cost(&self, command: RecordCost) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn intent_costs(
        &self,
        tenant: &TenantId,
        intent: IntentId,
        viewer: &Viewer,
        limit: u32,
    ) -> Result<Option<IntentCosts>, Refusal> {
        self.engine.read(ReadCosts { tenant: tenant.clone(), intent, viewer: viewer.clone(), limit }).await
    }
}

const COLUMNS: &str = "id, tenant, intent, task, agent, kind, amount, unit, provider, metadata, recorded_at";

fn read(row: &Row) -> Result<CostEntry, SqlError> {
    Ok(CostEntry {
        id: row.parsed(0, CostId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        intent: row.parsed(2, IntentId::parse)?,
        task: row.optional_parsed(3, TaskId::parse)?,
        agent: row.parsed(4, PrincipalId::parse)?,
        kind: row.parsed(5, CostKind::parse)?,
        amount_micros: row.count(6)?,
        unit: row.text(7)?.to_owned(),
        provider: row.optional_text(8)?.map(str::to_owned),
        metadata: row.json(9)?,
        recorded_at: row.time(10)?,
    })
}

impl Administration for RecordCost {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let entry = &self.entry;
        let held = hold(transaction, by, entry.intent).await?;
        if !held.directs() && !participates(transaction, by, entry.intent, &entry.agent).await? {
            return Err(Refusal::no_intent(entry.intent).into());
        }
        let count = number(transaction, "SELECT COUNT(*) FROM costs WHERE intent = $1", values![entry.intent]).await?;
        require_below(count, COSTS, "recorded costs of the intent")?;
        if let Some(task) = entry.task {
            task_rows::one(transaction, entry.intent, task).await?.ok_or_else(|| Refusal::no_task(task))?;
        }
        let sql = format!("INSERT INTO costs ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)");
        let parameters = values![
            entry.id,
            &entry.tenant,
            entry.intent,
            entry.task,
            &entry.agent,
            entry.kind.as_str(),
            entry.amount_micros,
            entry.unit.as_str(),
            entry.provider.as_deref(),
            json_text(&entry.metadata)?,
            entry.recorded_at,
        ];
        transaction.execute(&sql, parameters).await?;
        let payload = EventPayload::WorkCostRecorded(WorkCostRecorded {
            amount_micros: entry.amount_micros,
            cost_id: entry.id,
            cost_type: entry.kind.to_string(),
            intent_id: entry.intent,
            unit: entry.unit.clone(),
        });
        let details = IntentEventDetails {
            agent_id: Some(entry.agent.clone()),
            cost_id: Some(entry.id),
            task_id: entry.task,
            ..IntentEventDetails::default()
        };
        // The client has no type for a cost: it reads them as such.
        Noted::new(payload, None::<IntentEventKind>, details).record(transaction, by, entry.intent).await
    }
}

struct ReadCosts {
    tenant: TenantId,
    intent: IntentId,
    viewer: Viewer,
    limit: u32,
}

impl Operation for ReadCosts {
    type Output = Option<IntentCosts>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        if !sees(transaction, &self.tenant, self.intent, &self.viewer).await? {
            return Ok(None);
        }
        let mut of_intent = Conditions::default();
        of_intent.and("intent =", self.intent);
        let (size, order) = ("OCTET_LENGTH(metadata)", "id DESC");
        let limit = of_intent.fitting(transaction, (size, "costs", order), self.limit).await?;
        let sql = format!("SELECT {COLUMNS} FROM costs WHERE intent = $1 ORDER BY {order} LIMIT $2");
        let rows = transaction.query(&sql, values![self.intent, limit]).await?;
        let recorded = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        // Every entry counts, and none with its metadata, which may be large.
        let mut summary = CostSummary::default();
        let amounts = "SELECT kind, agent, task, amount, unit FROM costs WHERE intent = $1";
        for row in &transaction.query(amounts, values![self.intent]).await? {
            if let Some(cost) = dollars(row.count(3)?, row.text(4)?) {
                let agent = row.parsed(1, PrincipalId::parse)?;
                summary.add(row.parsed(0, CostKind::parse)?, &agent, row.optional_text(2)?, None, cost.micros());
            }
        }
        // Refused calls cost nothing, and calls in flight are counted as estimated.
        let made = "cost IS NOT NULL AND status <> 'denied'";
        let sums = format!(
            "SELECT agent, task, service, CAST(SUM(cost) AS BIGINT) FROM ( \
                 SELECT agent, task, service, cost FROM invocations WHERE tenant = $1 AND intent = $2 AND {made} \
                 UNION ALL SELECT agent, task, service, cost FROM calls_in_flight \
                 WHERE tenant = $1 AND intent = $2 AND {made} \
             ) AS calls GROUP BY agent, task, service"
        );
        let intent = self.intent.to_string();
        for row in &transaction.query(&sums, values![&self.tenant, intent.as_str()]).await? {
            let agent = row.parsed(0, PrincipalId::parse)?;
            let (task, service) = (row.optional_text(1)?, row.optional_text(2)?);
            summary.add(CostKind::ExternalTool, &agent, task, service, row.count(3)?);
        }
        let newest = format!(
            "SELECT id, agent, service, tool, task, cost, created_at FROM invocations \
             WHERE tenant = $1 AND intent = $2 AND {made} ORDER BY id DESC LIMIT $3"
        );
        let rows = transaction.query(&newest, values![&self.tenant, intent.as_str(), self.limit]).await?;
        let calls = rows.iter().map(read_call).collect::<Result<_, _>>()?;
        Ok(Some(IntentCosts { recorded, calls, summary }))
    }
}

fn read_call(row: &Row) -> Result<CallCost, SqlError> {
    Ok(CallCost {
        invocation: row.parsed(0, InvocationId::parse)?,
        agent: row.parsed(1, PrincipalId::parse)?,
        service: row.optional_text(2)?.map(str::to_owned),
        tool: row.text(3)?.to_owned(),
        task: row.optional_text(4)?.map(str::to_owned),
        cost: Cost::from_micros(row.count(5)?).ok_or_else(|| SqlError::Corrupt("the cost of a call".to_owned()))?,
        created_at: row.time(6)?,
    })
}
