//! Events of an intent, as its agents read them.

use toolgate_gate::ports::ledger::{IntentEventFilter, LogIntentEvent, Mandate, Page, PageRequest, Viewer};
use toolgate_model::id::{EventId, IntentId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::work::limits::LOGGED_EVENTS;
use toolgate_model::work::{IntentEvent, IntentEventKind};

use super::access::{hold, sees};
use super::{insert_event, number, require_below};
use crate::operation::Operation;
use crate::operation::administration::{Administration, Entitled};
use crate::operation::listing::Conditions;
use crate::sql::{Failure, Row, SqlError, json_text};
use crate::transaction::{Transaction, values};

const COLUMNS: &str = "id, tenant, intent, kind, actor, payload, created_at";

fn read(row: &Row) -> Result<IntentEvent, SqlError> {
    Ok(IntentEvent {
        id: row.parsed(0, EventId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        intent: row.parsed(2, IntentId::parse)?,
        kind: row.parsed(3, IntentEventKind::parse)?,
        actor: row.parsed(4, PrincipalId::parse)?,
        payload: row.json(5)?,
        created_at: row.time(6)?,
    })
}

impl Administration for LogIntentEvent {
    type Output = IntentEvent;

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<IntentEvent, Failure> {
        let held = hold(transaction, by, self.intent).await?;
        held.require_open()?;
        let count = "SELECT COUNT(*) FROM intent_events WHERE intent = $1";
        let count = number(transaction, count, values![self.intent]).await?;
        require_below(count, LOGGED_EVENTS, "events of the intent")?;
        let payload = json_text(&self.payload)?;
        let event = (self.id, self.intent, self.kind);
        insert_event(transaction, &by.tenant, event, &self.actor, payload, by.time).await?;
        Ok(IntentEvent {
            id: self.id,
            tenant: by.tenant.clone(),
            intent: self.intent,
            kind: self.kind,
            actor: self.actor.clone(),
            payload: self.payload.clone(),
            created_at: by.time,
        })
    }
}

pub struct ListIntentEvents {
    pub tenant: TenantId,
    pub id: IntentId,
    pub viewer: Viewer,
    pub filter: IntentEventFilter,
    pub page: PageRequest,
}

impl Operation for ListIntentEvents {
    type Output = Option<Page<IntentEvent>>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        if !sees(transaction, &self.tenant, self.id, &self.viewer).await? {
            return Ok(None);
        }
        let mut conditions = Conditions::default();
        conditions.and("intent =", self.id);
        conditions.and_if("kind =", self.filter.kind.map(IntentEventKind::as_str));
        conditions.and_if("created_at >=", self.filter.since);
        conditions.and_if("id >", self.page.after.as_deref());
        let (from, size) = ((COLUMNS, "intent_events", "id"), "OCTET_LENGTH(payload)");
        let page = conditions.page_within(transaction, from, size, &self.page, read, |event| event.id.to_string());
        page.await.map(Some)
    }
}
