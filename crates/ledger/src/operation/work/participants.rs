//! The agents that are assigned to an intent.

use toolgate_gate::ports::ledger::{AssignParticipant, Mandate, RemoveParticipant, Viewer};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, WorkAgentAssigned, WorkAgentUnassigned};
use toolgate_model::id::IntentId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::work::limits::PARTICIPANTS;
use toolgate_model::work::{IntentEventDetails, IntentEventKind, Participant};

use super::access::{hold, sees};
use super::{Noted, count_change, number, require_below};
use crate::operation::administration::{Administration, Entitled};
use crate::operation::{Operation, principals};
use crate::sql::{Failure, Row, SqlError};
use crate::transaction::{Transaction, values};

fn read(row: &Row) -> Result<Participant, SqlError> {
    Ok(Participant {
        intent: row.parsed(0, IntentId::parse)?,
        agent: row.parsed(1, PrincipalId::parse)?,
        role: row.text(2)?.to_owned(),
        assigned_by: row.parsed(3, PrincipalId::parse)?,
        assigned_at: row.time(4)?,
    })
}

impl Administration for AssignParticipant {
    type Output = Participant;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Participant, Failure> {
        principals::share_grantee(transaction, &by.tenant, &self.agent).await?;
        let held = hold(transaction, by, self.intent).await?;
        held.require_directed()?;
        held.require_open()?;
        let count = "SELECT COUNT(*) FROM participants WHERE intent = $1 AND agent <> $2";
        let count = number(transaction, count, values![self.intent, &self.agent]).await?;
        require_below(count, PARTICIPANTS, "agents assigned to the intent")?;
        let sql = "INSERT INTO participants (intent, agent, tenant, role, assigned_by, assigned_at) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (intent, agent) \
             DO UPDATE SET role = excluded.role, assigned_by = excluded.assigned_by, assigned_at = excluded.assigned_at";
        let parameters = values![self.intent, &self.agent, &by.tenant, self.role.as_str(), &by.actor, by.time];
        transaction.execute(sql, parameters).await?;
        let payload = EventPayload::WorkAgentAssigned(WorkAgentAssigned {
            agent_id: self.agent.clone(),
            intent_id: self.intent,
            role: self.role.clone(),
        });
        let details = IntentEventDetails {
            agent_id: Some(self.agent.clone()),
            role: Some(self.role.clone()),
            ..IntentEventDetails::default()
        };
        Noted::new(payload, IntentEventKind::AgentAssigned, details).record(transaction, by, self.intent).await?;
        Ok(Participant {
            intent: self.intent,
            agent: self.agent.clone(),
            role: self.role.clone(),
            assigned_by: by.actor.clone(),
            assigned_at: by.time,
        })
    }
}

impl Administration for RemoveParticipant {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let held = hold(transaction, by, self.intent).await?;
        // An agent may leave.
        if self.agent != by.actor {
            held.require_directed()?;
        }
        let sql = "DELETE FROM participants WHERE intent = $1 AND agent = $2";
        if transaction.execute(sql, values![self.intent, &self.agent]).await? == 0 {
            let reason = format!("`{}` is not assigned to intent {}", self.agent, self.intent);
            return Err(Refusal::new(Code::AgentNotFound, reason).with("agent_id", &self.agent).into());
        }
        let payload = EventPayload::WorkAgentUnassigned(WorkAgentUnassigned {
            agent_id: self.agent.clone(),
            intent_id: self.intent,
        });
        let details = IntentEventDetails { agent_id: Some(self.agent.clone()), ..IntentEventDetails::default() };
        Noted::new(payload, IntentEventKind::AgentUnassigned, details).record(transaction, by, self.intent).await?;
        count_change(transaction, &by.tenant).await
    }
}

pub struct ListParticipants {
    pub tenant: TenantId,
    pub id: IntentId,
    pub viewer: Viewer,
}

impl Operation for ListParticipants {
    type Output = Option<Vec<Participant>>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        if !sees(transaction, &self.tenant, self.id, &self.viewer).await? {
            return Ok(None);
        }
        let sql = "SELECT intent, agent, role, assigned_by, assigned_at FROM participants \
             WHERE intent = $1 ORDER BY assigned_at, agent";
        let rows = transaction.query(sql, values![self.id]).await?;
        Ok(Some(rows.iter().map(read).collect::<Result<_, _>>()?))
    }
}
