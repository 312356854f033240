//! Writing events, in the transaction of the change that they record.

use std::collections::{BTreeMap, btree_map};

use toolgate_gate::ports::entropy::random_for_id;
use toolgate_gate::ports::ledger::AuditContext;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::context::GrantContext;
use toolgate_model::event::{Event, EventPayload, event_leaf};
use toolgate_model::guard::HookDecision;
use toolgate_model::hook::ToolCalled;
use toolgate_model::id::EventId;
use toolgate_model::invocation::Invocation;
use toolgate_model::principal::PrincipalId;

use crate::sql::{Failure, Value};
use crate::transaction::{Rows, Transaction};

/// Something to be recorded.
pub struct Entry {
    /// Its id, where it is known beforehand.
    pub id: Option<EventId>,
    /// What.
    pub payload: EventPayload,
    /// The agent that it concerns.
    pub agent: Option<PrincipalId>,
    /// What it belongs to.
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

    /// What guardians said about a call.
    pub fn decided(decision: &HookDecision, invocation: &Invocation) -> Self {
        Self::of_call(EventPayload::HookDecided(Box::new(decision.clone())), invocation)
    }

    /// That a call is about to be made, with its arguments where the log may have them.
    pub fn called(invocation: &Invocation, inputs: Option<serde_json::Value>) -> Self {
        let payload = EventPayload::AgentToolCalled(Box::new(ToolCalled::of(invocation, inputs)));
        Self { id: Some(EventId::of_call(invocation.id)), ..Self::of_call(payload, invocation) }
    }
}

/// The rows of what many commands record, each with what is its own.
#[derive(Default)]
pub struct EventGroups {
    rows: Vec<Vec<Value>>,
    sizes: Vec<usize>,
}

impl EventGroups {
    /// One command more.
    pub fn push(&mut self, rows: Vec<Vec<Value>>) {
        self.sizes.push(rows.len());
        self.rows.extend(rows);
    }

    /// The rows of all of them, in order.
    pub fn all(&self) -> &[Vec<Value>] {
        &self.rows
    }

    /// The rows of those whose number is wanted, in order.
    pub fn of(&self, wanted: impl Fn(usize) -> bool) -> Vec<Vec<Value>> {
        let mut rest = self.rows.iter();
        let mut found = Vec::new();
        for (number, size) in self.sizes.iter().enumerate() {
            let own = rest.by_ref().take(*size);
            match wanted(number) {
                true => found.extend(own.cloned()),
                false => own.for_each(drop),
            }
        }
        found
    }

    /// The rows of each by itself.
    pub fn into_groups(self) -> impl Iterator<Item = Vec<Vec<Value>>> {
        let mut rest = self.rows.into_iter();
        self.sizes.into_iter().map(move |size| rest.by_ref().take(size).collect())
    }
}

const INTO: &str = "events (tenant, kind, actor, agent, intent, task, time, leaf, canonical, run, tool)";

/// The same with a place in the tenant's log.
const INTO_PLACE: &str =
    "events (tenant, kind, actor, agent, intent, task, time, leaf, canonical, run, tool, sequence)";
const NEXT_PLACE: &str = "SELECT COALESCE(MAX(sequence), -1) + 1 FROM events WHERE tenant = $1";

/// Records one thing.
pub async fn record<T: Transaction>(transaction: &mut T, audit: &AuditContext, entry: Entry) -> Result<(), Failure> {
    record_all(transaction, audit, vec![entry]).await
}

/// Records many things, in order.
pub async fn record_all<T: Transaction>(
    transaction: &mut T,
    audit: &AuditContext,
    entries: Vec<Entry>,
) -> Result<(), Failure> {
    let rows = entries.into_iter().map(|entry| event_row(audit, entry)).collect::<Result<Vec<_>, _>>()?;
    record_rows(transaction, &rows).await
}

/// The rows of many things that happened to many, in order.
pub fn event_rows<'a>(entries: impl Iterator<Item = (&'a AuditContext, Entry)>) -> Result<Vec<Vec<Value>>, Failure> {
    entries.map(|(audit, entry)| event_row(audit, entry)).collect()
}

/// Records what [`event_rows`] made.
pub async fn record_rows<T: Transaction>(transaction: &mut T, rows: &[Vec<Value>]) -> Result<(), Failure> {
    // A cascade may have reached nothing.
    let places = next_places(transaction, rows).await?;
    Ok(transaction.insert(recording::<T>(rows, &places)).await?)
}

/// What is inserted to record these, which get these places.
pub fn recording<'a, T: Transaction>(rows: &'a [Vec<Value>], places: &'a [i64]) -> Rows<'a> {
    let into = if T::ORDERS_EVENTS { INTO_PLACE } else { INTO };
    Rows { into, rows, numbers: places, otherwise: "" }
}

/// The next places in the logs of their tenants for these; none where they get them later.
pub async fn next_places<T: Transaction>(transaction: &mut T, rows: &[Vec<Value>]) -> Result<Vec<i64>, Failure> {
    if !T::ORDERS_EVENTS {
        return Ok(Vec::new());
    }
    let mut next: BTreeMap<&Value, i64> = BTreeMap::new();
    let mut places = Vec::with_capacity(rows.len());
    for tenant in rows.iter().filter_map(|row| row.first()) {
        let place = match next.entry(tenant) {
            btree_map::Entry::Occupied(known) => known.into_mut(),
            btree_map::Entry::Vacant(unknown) => {
                let first = transaction.query_optional(NEXT_PLACE, std::slice::from_ref(tenant)).await?;
                unknown.insert(first.map_or(Ok(0), |row| row.integer(0))?)
            }
        };
        places.push(*place);
        *place += 1;
    }
    Ok(places)
}

/// The row of one thing that happened.
pub fn event_row(audit: &AuditContext, entry: Entry) -> Result<Vec<Value>, Failure> {
    let event = Event {
        id: match entry.id {
            Some(id) => id,
            None => EventId::new(audit.time, random_for_id()?),
        },
        tenant: audit.tenant.clone(),
        actor: audit.actor.clone(),
        agent: entry.agent,
        context: entry.context,
        run: entry.run,
        time: audit.time,
        payload: entry.payload,
    };
    let unwritable = |error| Refusal::new(Code::Internal, format!("an event cannot be written: {error}"));
    let canonical = event.to_canonical().map_err(unwritable)?;
    let leaf = event_leaf(&canonical);
    Ok(vec![
        Value::from(&event.tenant),
        Value::from(event.payload.name()),
        Value::from(&event.actor),
        Value::from(event.agent.as_ref()),
        Value::from(event.context.intent_id.as_ref()),
        Value::from(event.context.task_id.as_ref()),
        Value::from(event.time),
        Value::from(leaf.as_bytes().as_slice()),
        // INVARIANT: canonical JSON is UTF-8.
        Value::Text(String::from_utf8(canonical).unwrap_or_default()),
        Value::from(event.run),
        Value::from(entry.tool),
    ])
}
