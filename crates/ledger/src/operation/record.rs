//! Writing events, in the transaction of the change that they record.

use std::borrow::Cow;
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
use toolgate_model::text::SharedText;

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
    pub tool: Option<SharedText>,
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
        let composed = match &payload {
            EventPayload::AgentToolCalled(called) => Some(&called.tool_name),
            EventPayload::ToolInvoked(invoked) => invoked.returned.as_ref().map(|returned| &returned.tool_name),
            _ => None,
        };
        let tool = composed.cloned().unwrap_or_else(|| invocation.tool_name());
        Self {
            agent: Some(invocation.agent.clone()),
            context: invocation.context.clone(),
            run: Some(invocation.run_id()),
            tool: Some(tool),
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

/// What the events of most commands take, so that their text is not moved while it grows.
const USUAL_BYTES: usize = 1536;

/// The few events that one command records, as the text of a batch.
pub struct Recorded {
    tenant: TenantId,
    events: u32,
    text: String,
}

impl Recorded {
    /// The events of these entries, in order.
    pub fn new(audit: &AuditContext, entries: impl IntoIterator<Item = Entry>) -> Result<Self, Failure> {
        let text = String::with_capacity(USUAL_BYTES);
        let mut recorded = Self { tenant: audit.tenant.clone(), events: 0, text };
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
        let mut logs: BTreeMap<&TenantId, Vec<Packed<'a>>> = BTreeMap::new();
        for one in recorded.filter(|one| one.events > 0) {
            let batches = logs.entry(&one.tenant).or_default();
            match batches.last_mut() {
                Some(batch) if batch.fits(one) => batch.add(one),
                _ => batches.push(Packed::of(one)),
            }
        }
        let mut rows = Vec::new();
        for (tenant, batches) in logs {
            let mut place = if T::ORDERS_EVENTS { Some(next_place(transaction, tenant).await?) } else { None };
            for batch in batches {
                let row = [Value::from(tenant), Value::from(batch.events), batch.stored()].into_iter();
                rows.push(row.chain(place.map(Value::Integer)).collect());
                place = place.map(|place| place.saturating_add(i64::from(batch.events)));
            }
        }
        let into = if T::ORDERS_EVENTS { INTO_PLACE } else { INTO };
        Ok(Self { into, rows })
    }

    pub fn insert(&self) -> Rows<'_> {
        Rows::new(self.into, &self.rows)
    }
}

/// What is stored in one row.
struct Packed<'a> {
    events: u32,
    /// The length of the text.
    length: usize,
    first: &'a Recorded,
    others: Vec<&'a Recorded>,
}

impl<'a> Packed<'a> {
    fn of(first: &'a Recorded) -> Self {
        Self { events: first.events, length: first.text.len(), first, others: Vec::new() }
    }

    fn fits(&self, next: &Recorded) -> bool {
        self.events.saturating_add(next.events) <= MOST_EVENTS
            && self.length.saturating_add(next.text.len()) <= MOST_BYTES
    }

    fn add(&mut self, next: &'a Recorded) {
        self.events = self.events.saturating_add(next.events);
        self.length = self.length.saturating_add(next.text.len()).saturating_add(1);
        self.others.push(next);
    }

    fn stored(&self) -> Value<'a> {
        if self.others.is_empty() {
            return Value::Blob(encode(&self.first.text));
        }
        let mut text = String::with_capacity(self.length);
        text.push_str(&self.first.text);
        for other in &self.others {
            text.push('\n');
            text.push_str(&other.text);
        }
        Value::Blob(Cow::Owned(encode(&text).into_owned()))
    }
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
