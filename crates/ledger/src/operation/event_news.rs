//! What is new in the logs that streams follow: how long each log is, and the headings of the events since the last look.

use toolgate_gate::ports::ledger::{EventHeading, LogNews};
use toolgate_model::principal::TenantId;

use super::Operation;
use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::{Query, Transaction};

/// How many headings of one log are read at a look. Where there are more, everybody who follows the log reads for
/// themselves: most of them have something to read then.
const MOST: u64 = 2048;

/// Looks for news.
pub struct ReadNews {
    /// The logs, each with how much of it was looked at before.
    pub followed: Vec<(TenantId, Option<u64>)>,
}

impl Operation for ReadNews {
    type Output = Vec<LogNews>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<LogNews>, Failure> {
        let size = |(tenant, _): &(TenantId, _)| -> Query {
            ("SELECT size FROM heads WHERE tenant = $1".to_owned(), vec![Value::from(tenant)])
        };
        let sizes: Vec<Query> = self.followed.iter().map(size).collect();
        let sizes = transaction.query_each(&sizes).await?;
        let mut news = Vec::new();
        let (mut positions, mut queries) = (Vec::new(), Vec::new());
        for ((tenant, seen), rows) in self.followed.iter().zip(sizes) {
            let size: u64 = rows.first().map_or(Ok(0), |row| row.count(0))?;
            if *seen == Some(size) {
                continue;
            }
            if let Some(seen) = seen.filter(|seen| *seen < size && size - *seen <= MOST) {
                positions.push(news.len());
                queries.push(headings(tenant, seen, size));
            }
            news.push(LogNews { tenant: tenant.clone(), size, headings: None });
        }
        let results = transaction.query_each(&queries).await?;
        for (place, rows) in positions.into_iter().zip(results) {
            if let Some(news) = news.get_mut(place) {
                news.headings = Some(rows.iter().map(heading).collect::<Result<_, _>>()?);
            }
        }
        Ok(news)
    }
}

fn headings(tenant: &TenantId, from: u64, to: u64) -> Query {
    let sql = "SELECT kind, agent, run, tool FROM events WHERE tenant = $1 AND sequence >= $2 AND sequence < $3";
    (sql.to_owned(), vec![Value::from(tenant), Value::from(from), Value::from(to)])
}

fn heading(row: &Row) -> Result<EventHeading, SqlError> {
    let optional = |column| row.optional_text(column).map(|text| text.map(str::to_owned));
    Ok(EventHeading { kind: row.text(0)?.to_owned(), agent: optional(1)?, run: optional(2)?, tool: optional(3)? })
}
