//! An index of the log by time: the times of each of its pages, written when events are integrated. Events are nearly
//! in the order of their times, but a clock may step back, so each page has the earliest and the latest time of its
//! events and no order is assumed.

use std::collections::BTreeMap;
use std::ops::Range;

use toolgate_gate::ports::ledger::EventFilter;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::listing::Conditions;
use crate::sql::{SqlError, Value};
use crate::transaction::{Rows, Transaction};

/// The number of log positions in a page.
const PAGE: u64 = 512;
/// The number of pages per query.
const WINDOW: usize = 64;

pub struct Period {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Period {
    /// The period of a filter; `None` if it is unlimited.
    pub fn of(filter: &EventFilter) -> Option<Self> {
        let period = Self { since: filter.since, until: filter.until };
        (period.since.is_some() || period.until.is_some()).then_some(period)
    }

    /// The next ranges of the log from this position that may have events of the period; empty at the end.
    pub async fn stretches<T: Transaction>(
        &self,
        transaction: &mut T,
        tenant: &TenantId,
        from: u64,
    ) -> Result<Vec<Range<u64>>, SqlError> {
        let mut conditions = Conditions::default();
        conditions.and("tenant =", tenant);
        conditions.and("page >=", from / PAGE);
        conditions.and_if("latest >=", self.since);
        conditions.and_if("earliest <", self.until);
        let (condition, values) = conditions.finish();
        let sql = format!("SELECT page FROM event_times WHERE {condition} ORDER BY page LIMIT {WINDOW}");
        stretches(&transaction.query(&sql, &values).await?, PAGE, from)
    }
}

/// The ranges of these pages, from this position; adjacent ones are merged.
pub(super) fn stretches(rows: &[crate::sql::Row], size: u64, from: u64) -> Result<Vec<Range<u64>>, SqlError> {
    let mut stretches: Vec<Range<u64>> = Vec::new();
    for row in rows {
        let begin = row.count::<u64>(0)?.saturating_mul(size);
        let end = begin.saturating_add(size);
        match stretches.last_mut() {
            Some(last) if last.end == begin => last.end = end,
            _ => stretches.push(begin.max(from)..end),
        }
    }
    Ok(stretches)
}

/// The times of some events, by page.
#[derive(Default)]
pub struct PageTimes(BTreeMap<u64, (Timestamp, Timestamp)>);

impl PageTimes {
    /// The table, and how a page that an earlier batch started is updated.
    pub const INTO: &'static str = "event_times (tenant, page, earliest, latest)";
    /// See [`PageTimes::INTO`].
    pub const OTHERWISE: &'static str = "ON CONFLICT (tenant, page) DO UPDATE SET \
         earliest = CASE WHEN excluded.earliest < event_times.earliest THEN excluded.earliest ELSE event_times.earliest END, \
         latest = CASE WHEN excluded.latest > event_times.latest THEN excluded.latest ELSE event_times.latest END";

    /// Adds the event at this position.
    pub fn note(&mut self, sequence: u64, time: Timestamp) {
        let page = self.0.entry(sequence / PAGE).or_insert((time, time));
        *page = (page.0.min(time), page.1.max(time));
    }

    pub fn rows(self, tenant: &TenantId) -> Vec<Vec<Value<'_>>> {
        let row = |(page, (earliest, latest))| {
            vec![Value::from(tenant), Value::from(page), Value::from(earliest), Value::from(latest)]
        };
        self.0.into_iter().map(row).collect()
    }

    /// The insert of these rows.
    pub fn keeping<'a>(rows: &'a [Vec<Value<'a>>]) -> Rows<'a> {
        Rows { into: Self::INTO, rows, otherwise: Self::OTHERWISE }
    }
}
