//! Where in the log to look: for each thing that events are looked for by, the pages of the log that have any such event.
//! It is written when events are taken into the tree, many at a time, and not with each call: nobody is shown an event
//! before that.

use std::collections::BTreeSet;
use std::ops::Range;

use toolgate_gate::ports::ledger::EventFilter;
use toolgate_model::principal::TenantId;

use super::listing::Conditions;
use crate::sql::{Row, SqlError, Value};
use crate::transaction::{Change, Rows, Transaction};

/// How many pages are looked up at a time.
const WINDOW: usize = 64;

/// What events are looked for by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Actor,
    Agent,
    Intent,
    Kind,
    Run,
    Task,
    Tool,
}

impl Field {
    /// All of them, in the order in which [`PageEntries::note`] finds them in a row.
    const ALL: [Self; 7] = [Self::Actor, Self::Agent, Self::Intent, Self::Kind, Self::Run, Self::Task, Self::Tool];

    /// As it stands in the index.
    fn as_str(self) -> &'static str {
        match self {
            Self::Actor => "actor",
            Self::Agent => "agent",
            Self::Intent => "intent",
            Self::Kind => "kind",
            Self::Run => "run",
            Self::Task => "task",
            Self::Tool => "tool",
        }
    }

    /// How many places of the log are a page. Fewer would make the index longer, more would make looking through a page
    /// slower. There are as many runs as calls, and what happens in one is mostly over within a page of this length.
    fn page(self) -> u64 {
        if self == Self::Run { 512 } else { 64 }
    }
}

/// What is looked for: events with one of these values in this field.
pub struct Sought {
    field: Field,
    values: Vec<Value>,
}

impl Sought {
    /// The part of a filter that leaves the fewest pages, as far as one can know; `None` where none is left out.
    pub fn narrowest(filter: &EventFilter) -> Option<Self> {
        let one = |field, value: Option<Value>| value.map(|value| Self { field, values: vec![value] });
        one(Field::Run, filter.run.as_deref().map(Value::from))
            .or_else(|| one(Field::Task, filter.task.as_ref().map(Value::from)))
            .or_else(|| one(Field::Intent, filter.intent.as_ref().map(Value::from)))
            .or_else(|| {
                let values: Vec<_> = filter.kinds.iter().map(|kind| Value::from(kind.as_str())).collect();
                let rare = !values.is_empty() && !filter.kinds.iter().any(|kind| is_usual(kind));
                rare.then_some(Self { field: Field::Kind, values })
            })
            .or_else(|| one(Field::Agent, filter.agent.as_ref().map(Value::from)))
            .or_else(|| one(Field::Actor, filter.actor.as_ref().map(Value::from)))
            .or_else(|| one(Field::Tool, filter.tool.as_deref().map(Value::from)))
    }

    /// The next stretches of the log from this place on that have any such event; none where there are no more.
    pub async fn stretches<T: Transaction>(
        &self,
        transaction: &mut T,
        tenant: &TenantId,
        from: u64,
    ) -> Result<Vec<Range<u64>>, SqlError> {
        let mut conditions = Conditions::default();
        conditions.and("tenant =", tenant);
        let table = if self.field == Field::Run {
            conditions.and_any("run", self.values.iter().cloned());
            "event_runs"
        } else {
            conditions.and("field =", self.field.as_str());
            conditions.and_any("value", self.values.iter().cloned());
            "event_pages"
        };
        let size = self.field.page();
        conditions.and("page >=", from / size);
        let (condition, values) = conditions.finish();
        let sql = format!("SELECT DISTINCT page FROM {table} WHERE {condition} ORDER BY page LIMIT {WINDOW}");
        let mut stretches: Vec<Range<u64>> = Vec::new();
        for row in transaction.query(&sql, &values).await? {
            let begin = row.count::<u64>(0)?.saturating_mul(size);
            let end = begin.saturating_add(size);
            match stretches.last_mut() {
                Some(last) if last.end == begin => last.end = end,
                _ => stretches.push(begin.max(from)..end),
            }
        }
        Ok(stretches)
    }
}

/// What every call leaves, of which there is more than of all else together: no page is without it.
fn is_usual(kind: &str) -> bool {
    matches!(kind, "agent.toolCalled" | "tool.invoked")
}

/// What the index has to say about some events.
#[derive(Default)]
pub struct PageEntries {
    entries: BTreeSet<(Field, String, u64)>,
    /// What was noted last of each field: most events have much in common with the one before.
    last: [Option<(String, u64)>; Field::ALL.len()],
}

impl PageEntries {
    /// The columns of an event that the index is made of, in the order of `Field::ALL`.
    pub const COLUMNS: &'static str = "actor, agent, intent, kind, run, task, tool";

    /// One event more: the one at this place, whose columns begin there in the row.
    pub fn note(&mut self, sequence: u64, row: &Row, first_column: usize) -> Result<(), SqlError> {
        for ((field, last), column) in Field::ALL.into_iter().zip(&mut self.last).zip(first_column..) {
            let Some(value) = row.optional_text(column)? else { continue };
            let page = sequence / field.page();
            let is_known = last.as_ref().is_some_and(|(known, of_page)| *of_page == page && known == value);
            if is_known || (field == Field::Kind && is_usual(value)) {
                continue;
            }
            self.entries.insert((field, value.to_owned(), page));
            *last = Some((value.to_owned(), page));
        }
        Ok(())
    }

    /// Writes them down. The first page of a batch may have been begun by the one before.
    pub async fn keep<T: Transaction>(self, transaction: &mut T, tenant: &TenantId) -> Result<(), SqlError> {
        let (runs, others): (Vec<_>, Vec<_>) = self.entries.into_iter().partition(|(field, ..)| *field == Field::Run);
        let run = |(_, run, page)| vec![Value::from(tenant), Value::Text(run), Value::from(page)];
        let other = |(field, value, page): (Field, String, u64)| {
            vec![Value::from(tenant), Value::from(field.as_str()), Value::Text(value), Value::from(page)]
        };
        let runs: Vec<Vec<Value>> = runs.into_iter().map(run).collect();
        let others: Vec<Vec<Value>> = others.into_iter().map(other).collect();
        let changes = [
            Change::Insert(Rows {
                into: "event_pages (tenant, field, value, page)",
                rows: &others,
                numbers: &[],
                otherwise: "ON CONFLICT (tenant, field, value, page) DO NOTHING",
            }),
            Change::Insert(Rows {
                into: "event_runs (tenant, run, page)",
                rows: &runs,
                numbers: &[],
                otherwise: "ON CONFLICT (tenant, run, page) DO NOTHING",
            }),
        ];
        transaction.change_each(&changes).await.map(drop)
    }
}
