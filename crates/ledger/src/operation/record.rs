//! Writing events, in the transaction of the change that they record.

use std::collections::BTreeMap;

use toolgate_gate::ports::entropy::random_for_id;
use toolgate_gate::ports::ledger::AuditContext;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::event::{Event, EventPayload};
use toolgate_model::guard::HookDecision;
use toolgate_model::hook::ToolCalled;
use toolgate_model::id::EventId;
use toolgate_model::invocation::Invocation;
use toolgate_model::principal::{PrincipalId, TenantId};

use super::event_batches::{Heading, MOST_BYTES, MOST_EVENTS, Term, encode};
use crate::sql::{Failure, Value};
use crate::transaction::{Rows, Transaction, values};

pub struct Entry {
    /// Set if it is known in advance.
    pub id: Option<EventId>,
    pub payload: EventPayload,
    /// The agent that it concerns.
    pub agent: Option<PrincipalId>,
    pub context: GrantContext,
    /// The execution that it belongs to.
    pub run: Option<String>,
    /// The tool that it is about, with its service.
    pub tool: Option<String>,
}

impl Entry {
    /// Something that concerns no agent.
    pub fn new(payload: EventPayload) -> Self {
        Self { id: None, payload, agent: None, context: GrantContext::default(), run: None, tool: None }
    }

    /// Something that concerns this agent.
    pub fn about(payload: EventPayload, agent: &PrincipalId) -> Self {
        Self { agent: Some(agent.clone()), ..Self::new(payload) }
    }

    /// Something that happened to a call.
    pub fn of_call(payload: EventPayload, invocation: &Invocation) -> Self {
        Self {
            agent: Some(invocation.agent.clone()),
            context: invocation.context.clone(),
            run: Some(invocation.run_id()),
            tool: Some(invocation.tool_name()),
            ..Self::new(payload)
        }
    }

    /// The event of a guardian decision about a call.
    pub fn decided(decision: &HookDecision, invocation: &Invocation) -> Self {
        Self::of_call(EventPayload::HookDecided(Box::new(decision.clone())), invocation)
    }

    /// The event of an admission, with the arguments if the log may contain them.
    pub fn called(invocation: &Invocation, inputs: Option<serde_json::Value>) -> Self {
        let payload = EventPayload::AgentToolCalled(Box::new(ToolCalled::of(invocation, inputs)));
        Self { id: Some(EventId::of_call(invocation.id)), ..Self::of_call(payload, invocation) }
    }
}

/// The few events that one command records, as the text of a batch.
pub struct Recorded {
    tenant: TenantId,
    events: u32,
    text: String,
}

impl Recorded {
    /// The events of these entries, in order.
    pub fn new(audit: &AuditContext, entries: impl IntoIterator<Item = Entry>) -> Result<Self, Failure> {
        let mut recorded = Self { tenant: audit.tenant.clone(), events: 0, text: String::new() };
        for entry in entries {
            recorded.push(audit, entry)?;
        }
        Ok(recorded)
    }

    fn push(&mut self, audit: &AuditContext, entry: Entry) -> Result<(), Failure> {
        let id = match entry.id {
            Some(id) => id,
            None => EventId::new(audit.time, random_for_id()?),
        };
        let tool = entry.tool;
        let event = Event {
            id,
            tenant: audit.tenant.clone(),
            actor: audit.actor.clone(),
            agent: entry.agent,
            context: entry.context,
            run: entry.run,
            time: audit.time,
            payload: entry.payload,
        };
        let terms = [
            Some(event.actor.as_str()),
            event.agent.as_ref().map(PrincipalId::as_str),
            event.context.intent_id.as_ref().map(ContextId::as_str),
            Some(event.payload.name()),
            event.run.as_deref(),
            event.context.task_id.as_ref().map(ContextId::as_str),
            tool.as_deref(),
        ];
        let unwritable = |error: &dyn std::fmt::Display| {
            Refusal::new(Code::Internal, format!("an event cannot be written: {error}"))
        };
        let mut text = std::mem::take(&mut self.text).into_bytes();
        if self.events > 0 {
            text.push(b'\n');
        }
        let heading = Heading(terms.map(Term::of), event.time.as_millis());
        serde_json::to_writer(&mut text, &heading).map_err(|error| unwritable(&error))?;
        text.push(b'\n');
        event.write_canonical(&mut text).map_err(|error| unwritable(&error))?;
        self.text = String::from_utf8(text).map_err(|error| unwritable(&error))?;
        self.events = self.events.saturating_add(1);
        Ok(())
    }
}

/// The rows of batches, ready for insertion.
pub struct BatchRows<'a> {
    into: &'static str,
    rows: Vec<Vec<Value<'a>>>,
}

impl<'a> BatchRows<'a> {
    /// Packs what commands record into as few rows as the limits of a batch allow, and assigns positions in the logs of
    /// their tenants if these are known already.
    pub async fn of<T: Transaction>(
        transaction: &mut T,
        recorded: impl Iterator<Item = &'a Recorded>,
    ) -> Result<Self, Failure> {
        let mut logs: BTreeMap<&TenantId, Vec<(u32, String)>> = BTreeMap::new();
        for one in recorded.filter(|one| one.events > 0) {
            let batches = logs.entry(&one.tenant).or_default();
            match batches.last_mut() {
                Some((events, text)) if fits(*events, text, one) => {
                    *events = events.saturating_add(one.events);
                    text.push('\n');
                    text.push_str(&one.text);
                }
                _ => batches.push((one.events, one.text.clone())),
            }
        }
        let mut rows = Vec::new();
        for (tenant, batches) in logs {
            let mut place = if T::ORDERS_EVENTS { Some(next_place(transaction, tenant).await?) } else { None };
            for (events, text) in batches {
                let stored = Value::from(encode(&text));
                let row = [Value::from(tenant), Value::from(events), stored].into_iter();
                rows.push(row.chain(place.map(Value::Integer)).collect());
                place = place.map(|place| place.saturating_add(i64::from(events)));
            }
        }
        let into = if T::ORDERS_EVENTS { INTO_PLACE } else { INTO };
        Ok(Self { into, rows })
    }

    pub fn insert(&self) -> Rows<'_> {
        Rows::new(self.into, &self.rows)
    }
}

fn fits(events: u32, text: &str, next: &Recorded) -> bool {
    events.saturating_add(next.events) <= MOST_EVENTS && text.len().saturating_add(next.text.len()) <= MOST_BYTES
}

const INTO: &str = "event_batches (tenant, size, events)";
const INTO_PLACE: &str = "event_batches (tenant, size, events, first)";

/// The position after the last event of a tenant.
async fn next_place<T: Transaction>(transaction: &mut T, tenant: &TenantId) -> Result<i64, Failure> {
    let sql = "SELECT first + size FROM event_batches WHERE tenant = $1 ORDER BY first DESC LIMIT 1";
    let row = transaction.query_optional(sql, values![tenant]).await?;
    Ok(row.map_or(Ok(0), |row| row.integer(0))?)
}

pub async fn record<T: Transaction>(transaction: &mut T, audit: &AuditContext, entry: Entry) -> Result<(), Failure> {
    record_all(transaction, audit, [entry]).await
}

/// Records several events, in order.
pub async fn record_all<T: Transaction>(
    transaction: &mut T,
    audit: &AuditContext,
    entries: impl IntoIterator<Item = Entry>,
) -> Result<(), Failure> {
    let each = |entry| Recorded::new(audit, [entry]);
    let recorded = entries.into_iter().map(each).collect::<Result<Vec<_>, _>>()?;
    record_each(transaction, &recorded).await
}

/// Records the events of several commands or tenants.
pub async fn record_each<T: Transaction>(transaction: &mut T, recorded: &[Recorded]) -> Result<(), Failure> {
    let batches = BatchRows::of(transaction, recorded.iter()).await?;
    Ok(transaction.insert(batches.insert()).await?)
}
