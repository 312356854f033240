//! Intents.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    AssignParticipant, ChangeIntent, CreateIntent, IntentEventFilter, IntentFilter, Intents, LogIntentEvent, Mandate,
    Page, PageRequest, RemoveParticipant, Viewer,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, WorkIntentChanged, WorkIntentCreated};
use toolgate_model::id::IntentId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::work::limits::{OPEN_INTENTS, STATE_BYTES};
use toolgate_model::work::{
    Intent, IntentChange, IntentEvent, IntentEventDetails, IntentEventKind, IntentStatus, Participant,
};

use super::access::{self, HeldIntent, hold, seen_by};
use super::intent_events::ListIntentEvents;
use super::participants::ListParticipants;
use super::{
    Noted, agent_work, coordinators, count_change, endings, number, require_below, require_version, retention,
};
use crate::ledger::{Engine, SqlLedger};
use crate::operation::administration::{Administration, Entitled};
use crate::operation::listing::Conditions;
use crate::operation::{Operation, principals};
use crate::sql::{Failure, Row, SqlError, json_text};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Intents for SqlLedger<E> {
    async fn create_intent(&self, command: CreateIntent) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn intent(&self, tenant: &TenantId, id: IntentId, viewer: &Viewer) -> Result<Option<Intent>, Refusal> {
        self.engine.read(ReadIntent { tenant: tenant.clone(), id, viewer: viewer.clone() }).await
    }

    async fn intents(
        &self,
        tenant: &TenantId,
        filter: IntentFilter,
        viewer: &Viewer,
        page: PageRequest,
    ) -> Result<Page<Intent>, Refusal> {
        let (tenant, viewer) = (tenant.clone(), viewer.clone());
        self.engine.read(ListIntents { tenant, filter, viewer, page }).await
    }

    async fn change_intent(&self, command: ChangeIntent) -> Result<Intent, Refusal> {
        self.engine.write(command).await
    }

    async fn participants(
        &self,
        tenant: &TenantId,
        id: IntentId,
        viewer: &Viewer,
    ) -> Result<Option<Vec<Participant>>, Refusal> {
        self.engine.read(ListParticipants { tenant: tenant.clone(), id, viewer: viewer.clone() }).await
    }

    async fn assign_participant(&self, command: AssignParticipant) -> Result<Participant, Refusal> {
        self.engine.write(command).await
    }

    async fn remove_participant(&self, command: RemoveParticipant) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn log_intent_event(&self, command: LogIntentEvent) -> Result<IntentEvent, Refusal> {
        self.engine.write(command).await
    }

    async fn intent_events(
        &self,
        tenant: &TenantId,
        id: IntentId,
        viewer: &Viewer,
        filter: IntentEventFilter,
        page: PageRequest,
    ) -> Result<Option<Page<IntentEvent>>, Refusal> {
        let (tenant, viewer) = (tenant.clone(), viewer.clone());
        self.engine.read(ListIntentEvents { tenant, id, viewer, filter, page }).await
    }
}

pub const COLUMNS: &str = "id, tenant, version, status, title, description, state, constraints, parent, depends_on, \
     created_by, created_at, updated_at";

/// Reads a row of [`COLUMNS`].
pub fn read(row: &Row) -> Result<Intent, SqlError> {
    Ok(Intent {
        id: row.parsed(0, IntentId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        version: row.count(2)?,
        status: row.parsed(3, IntentStatus::parse)?,
        title: row.text(4)?.to_owned(),
        description: row.text(5)?.to_owned(),
        state: row.json(6)?,
        constraints: row.json(7)?,
        parent: row.optional_parsed(8, IntentId::parse)?,
        depends_on: row.json(9)?,
        created_by: row.parsed(10, PrincipalId::parse)?,
        created_at: row.time(11)?,
        updated_at: row.time(12)?,
    })
}

impl Administration for CreateIntent {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let intent = &self.intent;
        principals::share_grantee(transaction, &by.tenant, &intent.created_by).await?;
        // Two concurrent transactions may both find the last place: exceeding the limit by one is harmless.
        let open = "SELECT COUNT(*) FROM intents WHERE tenant = $1 AND created_by = $2 \
             AND status <> 'completed' AND status <> 'abandoned'";
        let open = number(transaction, open, values![&by.tenant, &intent.created_by]).await?;
        require_below(open, OPEN_INTENTS, &format!("open intents of `{}`", intent.created_by))?;
        retention::make_room(transaction, by, &intent.created_by).await?;
        for other in intent.parent.iter().chain(&intent.depends_on) {
            hold(transaction, by, *other).await?;
        }
        agent_work::begin(transaction, &by.tenant).await?;
        let sql =
            format!("INSERT INTO intents ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)");
        let parameters = values![
            intent.id,
            &intent.tenant,
            intent.version,
            intent.status.as_str(),
            intent.title.as_str(),
            intent.description.as_str(),
            json_text(&intent.state)?,
            json_text(&intent.constraints)?,
            intent.parent,
            json_text(&intent.depends_on)?,
            &intent.created_by,
            intent.created_at,
            intent.updated_at,
        ];
        transaction.execute(&sql, parameters).await?;
        let payload = EventPayload::WorkIntentCreated(WorkIntentCreated {
            created_by: intent.created_by.clone(),
            intent_id: intent.id,
            status: intent.status,
        });
        let details = IntentEventDetails {
            name: Some(intent.title.clone()),
            to: Some(intent.status.to_string()),
            ..IntentEventDetails::default()
        };
        Noted::new(payload, IntentEventKind::IntentCreated, details).record(transaction, by, intent.id).await
    }
}

impl Administration for ChangeIntent {
    type Output = Intent;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Intent, Failure> {
        let held = hold(transaction, by, self.id).await?;
        held.require_directed()?;
        require_version(&format!("intent {}", self.id), held.intent.version, self.expected_version)?;
        held.require_open()?;
        if matches!(self.change, IntentChange::Status { status, .. } if status.has_ended()) {
            coordinators::require_endable(by, &held.coordinators)?;
        }
        let HeldIntent { mut intent, coordinators, .. } = held;
        let from = intent.status;
        let mut reason_given = None;
        match &self.change {
            IntentChange::Status { status, reason } => {
                intent.status = *status;
                reason_given.clone_from(reason);
            }
            IntentChange::State(patches) => {
                for patch in patches {
                    patch
                        .apply(&mut intent.state)
                        .map_err(|error| Refusal::new(Code::InvalidField, error.to_string()).with("path", "patches"))?;
                }
                let bytes = serde_json::to_vec(&intent.state).map_or(usize::MAX, |bytes| bytes.len());
                if bytes > STATE_BYTES {
                    let reason = format!("the state would have {bytes} bytes of JSON; at most {STATE_BYTES} are kept");
                    return Err(Refusal::new(Code::InvalidField, reason).with("path", "patches").into());
                }
            }
        }
        intent.version += 1;
        intent.updated_at = by.time;
        let sql = "UPDATE intents SET version = $1, status = $2, state = $3, updated_at = $4 WHERE id = $5";
        let state = json_text(&intent.state)?;
        let parameters = values![intent.version, intent.status.as_str(), state, by.time, intent.id];
        transaction.execute(sql, parameters).await?;
        let is_status = matches!(self.change, IntentChange::Status { .. });
        let payload = EventPayload::WorkIntentChanged(WorkIntentChanged {
            intent_id: intent.id,
            reason: reason_given.clone(),
            status: is_status.then_some(intent.status),
            version: intent.version,
        });
        let details = IntentEventDetails {
            from: is_status.then(|| from.to_string()),
            to: is_status.then(|| intent.status.to_string()),
            reason: reason_given,
            version: Some(intent.version),
            ..IntentEventDetails::default()
        };
        let kind = if is_status { IntentEventKind::StatusChanged } else { IntentEventKind::StatePatched };
        Noted::new(payload, kind, details).record(transaction, by, intent.id).await?;
        if intent.status.has_ended() {
            endings::end_below(transaction, by, &intent, &coordinators).await?;
            count_change(transaction, &by.tenant).await?;
        }
        Ok(intent)
    }
}

struct ReadIntent {
    tenant: TenantId,
    id: IntentId,
    viewer: Viewer,
}

impl Operation for ReadIntent {
    type Output = Option<Intent>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Intent>, Failure> {
        if !access::sees(transaction, &self.tenant, self.id, &self.viewer).await? {
            return Ok(None);
        }
        let sql = format!("SELECT {COLUMNS} FROM intents WHERE id = $1 AND tenant = $2");
        let row = transaction.query_optional(&sql, values![self.id, &self.tenant]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }
}

struct ListIntents {
    tenant: TenantId,
    filter: IntentFilter,
    viewer: Viewer,
    page: PageRequest,
}

impl Operation for ListIntents {
    type Output = Page<Intent>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<Intent>, Failure> {
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        conditions.and_if("status =", self.filter.status.map(IntentStatus::as_str));
        conditions.and_if("created_by =", self.filter.created_by.as_ref());
        seen_by(&mut conditions, "id", &self.viewer);
        conditions.and_if("id >", self.page.after.as_deref());
        let (from, size) = ((COLUMNS, "intents", "id"), "OCTET_LENGTH(state) + OCTET_LENGTH(constraints)");
        conditions.page_within(transaction, from, size, &self.page, read, |intent| intent.id.to_string()).await
    }
}
