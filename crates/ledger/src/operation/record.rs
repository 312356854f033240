//! Writing events, in the transaction of the change that they record.

use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::Stamp;
use toolgate_model::context::GrantContext;
use toolgate_model::event::{Event, Happening, event_leaf};
use toolgate_model::id::EventId;
use toolgate_model::principal::PrincipalId;

use crate::sql::{Failure, Value};
use crate::transaction::Transaction;

/// Something to be recorded.
pub struct Entry {
    /// What.
    pub happening: Happening,
    /// The agent that it concerns.
    pub agent: Option<PrincipalId>,
    /// What it belongs to.
    pub context: GrantContext,
}

impl Entry {
    /// Something that concerns no agent.
    pub fn new(happening: Happening) -> Self {
        Self { happening, agent: None, context: GrantContext::default() }
    }

    /// Something that concerns this agent.
    pub fn about(happening: Happening, agent: &PrincipalId) -> Self {
        Self { happening, agent: Some(agent.clone()), context: GrantContext::default() }
    }
}

const INTO: &str = "events (tenant, kind, actor, agent, intent, task, time, leaf, canonical)";

/// Gives an event the next place in its tenant's log at once.
const INTO_PLACE: &str = "INSERT INTO events (tenant, kind, actor, agent, intent, task, time, leaf, canonical, sequence) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, \
     (SELECT COALESCE(MAX(sequence), -1) + 1 FROM events WHERE tenant = $1))";

/// Records one thing.
pub async fn record<T: Transaction>(transaction: &mut T, stamp: &Stamp, entry: Entry) -> Result<(), Failure> {
    record_all(transaction, stamp, vec![entry]).await
}

/// Records many things, in order.
pub async fn record_all<T: Transaction>(
    transaction: &mut T,
    stamp: &Stamp,
    entries: Vec<Entry>,
) -> Result<(), Failure> {
    let rows = entries.into_iter().map(|entry| event_row(stamp, entry)).collect::<Result<Vec<_>, _>>()?;
    record_rows(transaction, &rows).await
}

/// The rows of many things that happened to many, in order.
pub fn event_rows<'a>(entries: impl Iterator<Item = (&'a Stamp, Entry)>) -> Result<Vec<Vec<Value>>, Failure> {
    entries.map(|(stamp, entry)| event_row(stamp, entry)).collect()
}

/// Records what [`event_rows`] made.
pub async fn record_rows<T: Transaction>(transaction: &mut T, rows: &[Vec<Value>]) -> Result<(), Failure> {
    if rows.is_empty() {
        // A cascade that reached nothing; an INSERT without rows is no statement.
        return Ok(());
    }
    match T::ORDERS_EVENTS {
        true => transaction.execute_many(INTO_PLACE, rows).await.map(drop)?,
        false => transaction.insert_many(INTO, rows).await?,
    }
    Ok(())
}

/// The row of one thing that happened.
pub fn event_row(stamp: &Stamp, entry: Entry) -> Result<Vec<Value>, Failure> {
    let event = Event {
        id: EventId::new(stamp.time, random()?),
        tenant: stamp.tenant.clone(),
        actor: stamp.actor.clone(),
        agent: entry.agent,
        context: entry.context,
        time: stamp.time,
        happening: entry.happening,
    };
    let canonical = event.to_canonical();
    let leaf = event_leaf(&canonical);
    Ok(vec![
        Value::from(&event.tenant),
        Value::from(event.happening.name()),
        Value::from(&event.actor),
        Value::from(event.agent.as_ref()),
        Value::from(event.context.intent_id.as_ref()),
        Value::from(event.context.task_id.as_ref()),
        Value::from(event.time),
        Value::from(leaf.as_bytes().as_slice()),
        // INVARIANT: canonical JSON is UTF-8.
        Value::Text(String::from_utf8(canonical).unwrap_or_default()),
    ])
}
