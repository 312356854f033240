//! New events in the followed logs: the size of each log, and the headings of the events since the last poll.

use std::ops::Range;

use toolgate_gate::ports::ledger::{EventHeading, LogNews};
use toolgate_model::principal::TenantId;

use super::Operation;
use super::event_batches::{Batch, BatchReader, Field, Heading};
use crate::sql::{Failure, SqlError, Value};
use crate::transaction::{Query, Transaction};

/// The maximum number of headings of one log per poll. If there are more, every follower of the log reads it: most of
/// them have something to read then.
const MOST: u64 = 2048;

pub struct ReadNews {
    /// The logs, each with the position up to which it was polled.
    pub followed: Vec<(TenantId, Option<u64>)>,
}

impl Operation for ReadNews {
    type Output = Vec<LogNews>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<LogNews>, Failure> {
        let sql = "SELECT size FROM heads WHERE tenant = $1";
        let sizes = self.followed.iter().map(|(tenant, _)| (sql.to_owned(), vec![Value::from(tenant)]));
        let sizes: Vec<Query<'_>> = sizes.collect();
        let sizes = transaction.query_each(&sizes).await?;
        let mut news = Vec::new();
        for ((tenant, seen), rows) in self.followed.iter().zip(sizes) {
            let size: u64 = rows.first().map_or(Ok(0), |row| row.count(0))?;
            if *seen == Some(size) {
                continue;
            }
            let headings = match seen.filter(|seen| *seen < size && size - *seen <= MOST) {
                Some(seen) => Some(headings(transaction, tenant, seen..size).await?),
                None => None,
            };
            news.push(LogNews { tenant: tenant.clone(), size, headings });
        }
        Ok(news)
    }
}

async fn headings<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    stretch: Range<u64>,
) -> Result<Vec<EventHeading>, SqlError> {
    let mut headings = Vec::new();
    let mut reader = BatchReader::new(tenant, stretch.clone());
    loop {
        let batches = reader.next(transaction).await?;
        if batches.is_empty() {
            return Ok(headings);
        }
        for event in batches.iter().flat_map(Batch::events) {
            let event = event?;
            if stretch.contains(&event.sequence) {
                headings.push(heading(&event.heading));
            }
        }
    }
}

fn heading(heading: &Heading<'_>) -> EventHeading {
    let get = |field| heading.get(field).map(str::to_owned);
    EventHeading {
        kind: get(Field::Kind).unwrap_or_default(),
        agent: get(Field::Agent),
        run: get(Field::Run),
        tool: get(Field::Tool),
    }
}
