//! An index of the log: for each value that events are searched by, the pages of the log with such an event. It is
//! written when events are integrated, many at a time, and not with each call: no event is shown before that.

use std::collections::BTreeSet;
use std::ops::Range;

use toolgate_gate::ports::ledger::EventFilter;
use toolgate_model::event::EventKind;
use toolgate_model::principal::TenantId;

use super::event_batches::{Field, Heading};
use super::event_times::{PageTimes, stretches};
use super::listing::Conditions;
use crate::sql::{SqlError, Value};
use crate::transaction::{Change, Rows, Transaction};

/// The number of pages per query.
const WINDOW: usize = 64;

/// The number of log positions in a page. Smaller pages make the index larger, larger ones make reading a page slower.
/// There are as many runs as calls, and the events of a run are mostly within one page of this size.
fn page_size(field: Field) -> u64 {
    if field == Field::Run { 512 } else { 64 }
}

/// Events with one of these values in this field.
struct Term<'a> {
    field: Field,
    values: Vec<Value<'a>>,
}

/// A search for events that match all terms.
pub struct PageSearch<'a> {
    /// The term that leaves the fewest pages, as far as one can know.
    narrowest: Term<'a>,
    /// The others, which leave some of those out.
    others: Vec<Term<'a>>,
}

impl<'a> PageSearch<'a> {
    /// The search for a filter; `None` if it excludes no page.
    pub fn of(filter: &'a EventFilter) -> Option<Self> {
        let one = |field, value: Option<Value<'a>>| value.map(|value| Term { field, values: vec![value] });
        let kinds: Vec<_> = filter.kinds.iter().map(|kind| Value::from(kind.as_str())).collect();
        let rare = !kinds.is_empty() && !filter.kinds.iter().any(|kind| is_usual(kind));
        let terms = [
            one(Field::Run, filter.run.as_deref().map(Value::from)),
            one(Field::Task, filter.task.as_ref().map(Value::from)),
            one(Field::Intent, filter.intent.as_ref().map(Value::from)),
            rare.then_some(Term { field: Field::Kind, values: kinds }),
            one(Field::Agent, filter.agent.as_ref().map(Value::from)),
            one(Field::Actor, filter.actor.as_ref().map(Value::from)),
            one(Field::Tool, filter.tool.as_deref().map(Value::from)),
        ];
        let mut terms = terms.into_iter().flatten();
        let narrowest = terms.next()?;
        // A run is over within a page or two, and its pages are longer.
        let others = if narrowest.field == Field::Run { Vec::new() } else { terms.collect() };
        Some(Self { narrowest, others })
    }

    /// The next ranges within this one that may have such an event; empty at the end.
    pub async fn stretches<T: Transaction>(
        &self,
        transaction: &mut T,
        tenant: &TenantId,
        within: &Range<u64>,
    ) -> Result<Vec<Range<u64>>, SqlError> {
        let Term { field, values } = &self.narrowest;
        let mut conditions = Conditions::default();
        let (table, size) = (if *field == Field::Run { "event_runs" } else { "event_pages" }, page_size(*field));
        conditions.and(&format!("{table}.tenant ="), tenant);
        if *field == Field::Run {
            conditions.and_any("run", values.iter().cloned());
        } else {
            conditions.and("event_pages.field =", field.as_str());
            conditions.and_any("event_pages.value", values.iter().cloned());
        }
        conditions.and(&format!("{table}.page >="), within.start / size);
        conditions.and(&format!("{table}.page <"), within.end.div_ceil(size));
        for other in &self.others {
            // Closed by the bracket below.
            let exists =
                "EXISTS (SELECT 1 FROM event_pages AS other WHERE other.page = event_pages.page AND other.tenant =";
            conditions.and(exists, tenant);
            conditions.and("other.field =", other.field.as_str());
            conditions.and_any("other.value", other.values.iter().cloned());
            conditions.close();
        }
        let (condition, values) = conditions.finish();
        let sql = format!("SELECT DISTINCT page FROM {table} WHERE {condition} ORDER BY page LIMIT {WINDOW}");
        stretches(&transaction.query(&sql, &values).await?, size, within.start)
    }
}

/// Event types that every call produces, more than all others together: every page has them.
fn is_usual(kind: &str) -> bool {
    [EventKind::AgentToolCalled, EventKind::ToolInvoked].iter().any(|usual| usual.as_str() == kind)
}

/// The index entries for some events.
#[derive(Default)]
pub struct PageEntries {
    entries: BTreeSet<(Field, String, u64)>,
    /// The last entry of each field: most events have much in common with the previous one.
    last: [Option<(String, u64)>; Field::ALL.len()],
}

impl PageEntries {
    /// Adds the event at this position.
    pub fn note(&mut self, sequence: u64, heading: &Heading<'_>) {
        for ((field, term), last) in Field::ALL.into_iter().zip(&heading.0).zip(&mut self.last) {
            let Some(value) = term.0.as_deref() else { continue };
            let page = sequence / page_size(field);
            let is_known = last.as_ref().is_some_and(|(known, of_page)| *of_page == page && known == value);
            if is_known || (field == Field::Kind && is_usual(value)) {
                continue;
            }
            self.entries.insert((field, value.to_owned(), page));
            *last = Some((value.to_owned(), page));
        }
    }

    /// Writes the entries, with the times of the same events. The first page of a batch may have been started by the
    /// previous one.
    pub async fn keep<T: Transaction>(
        self,
        times: PageTimes,
        transaction: &mut T,
        tenant: &TenantId,
    ) -> Result<(), SqlError> {
        let (runs, others): (Vec<_>, Vec<_>) = self.entries.into_iter().partition(|(field, ..)| *field == Field::Run);
        let run = |(_, run, page)| vec![Value::from(tenant), Value::from(run), Value::from(page)];
        let other = |(field, value, page): (Field, String, u64)| {
            vec![Value::from(tenant), Value::from(field.as_str()), Value::from(value), Value::from(page)]
        };
        let runs: Vec<Vec<Value<'_>>> = runs.into_iter().map(run).collect();
        let others: Vec<Vec<Value<'_>>> = others.into_iter().map(other).collect();
        let times = times.rows(tenant);
        let changes = [
            Change::Insert(PageTimes::keeping(&times)),
            Change::Insert(Rows {
                into: "event_pages (tenant, field, value, page)",
                rows: &others,
                otherwise: "ON CONFLICT (tenant, field, value, page) DO NOTHING",
            }),
            Change::Insert(Rows {
                into: "event_runs (tenant, run, page)",
                rows: &runs,
                otherwise: "ON CONFLICT (tenant, run, page) DO NOTHING",
            }),
        ];
        transaction.change_each(&changes).await.map(drop)
    }
}
