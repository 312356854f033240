//! A transaction on SQLite: statements run synchronously, on the thread that has the connection.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};
use toolgate_gate::ports::ledger::{Generation, Revision};

use super::connection::sql_error;
use crate::sql::{Row, SqlError, Value};
use crate::transaction::{Insert, Rows, Table, Transaction, insert_statement};

/// The numbers of rows per insert statement, in descending order.
const AT_ONCE: [usize; 6] = [32, 16, 8, 4, 2, 1];
/// A failed statement may leave rows behind: every failed operation is rolled back as a whole, so SQLite need not keep
/// the pages of each statement for that.
const VERB: &str = "INSERT OR FAIL INTO";

/// One operation's view of the connection.
pub struct SqliteTransaction<'a> {
    connection: &'a mut Connection,
    generation: Option<Generation>,
}

impl<'a> SqliteTransaction<'a> {
    pub(super) fn new(connection: &'a mut Connection) -> Self {
        Self { connection, generation: None }
    }

    /// For writing, at this point in the history of authority.
    pub(super) fn at(connection: &'a mut Connection, generation: Generation) -> Self {
        Self { connection, generation: Some(generation) }
    }

    fn query_now(&mut self, sql: &str, parameters: &[Value<'_>]) -> Result<Vec<Row>, rusqlite::Error> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let width = statement.column_count();
        let mut rows = statement.query(rusqlite::params_from_iter(parameters))?;
        let mut rows_read = Vec::new();
        while let Some(row) = rows.next()? {
            let columns =
                (0..width).map(|column| Ok(read(row.get_ref(column)?))).collect::<Result<_, rusqlite::Error>>()?;
            rows_read.push(Row::new(columns));
        }
        Ok(rows_read)
    }

    fn execute_now(&mut self, sql: &str, parameters: &[Value<'_>]) -> Result<u64, rusqlite::Error> {
        let changed = self.connection.prepare_cached(sql)?.execute(rusqlite::params_from_iter(parameters))?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    /// Inserts rows, several with each statement: preparing the tables for one costs as much as a row.
    fn insert_now(&mut self, rows: Rows<'_>) -> Result<(), rusqlite::Error> {
        let columns = rows.columns();
        let Rows { into, rows, otherwise } = rows;
        let mut done = 0;
        for size in AT_ONCE {
            while let Some(chunk) = rows.get(done..done + size) {
                let insert = insert_statement(Insert { verb: VERB, otherwise }, into, size, columns);
                let values = chunk.iter().flatten();
                self.connection.prepare_cached(&insert)?.execute(rusqlite::params_from_iter(values))?;
                done += size;
            }
        }
        Ok(())
    }

    /// Runs the statement on several rows at a time.
    fn execute_with_now(&mut self, table: Table<'_>, sql: &str) -> Result<u64, rusqlite::Error> {
        let (mut done, mut changed) = (0, 0);
        for size in AT_ONCE {
            while let Some(chunk) = table.rows.get(done..done + size) {
                let statement = statement_with(&table, size, sql);
                let values = rusqlite::params_from_iter(chunk.iter().flatten());
                changed += self.connection.prepare_cached(&statement)?.execute(values)?;
                done += size;
            }
        }
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    fn execute_all_now(&mut self, sql: &str, parameters: &[Vec<Value<'_>>]) -> Result<Vec<u64>, rusqlite::Error> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let run = |set: &Vec<Value<'_>>| {
            let changed = statement.execute(rusqlite::params_from_iter(set))?;
            Ok(u64::try_from(changed).unwrap_or(u64::MAX))
        };
        parameters.iter().map(run).collect()
    }
}

impl Transaction for SqliteTransaction<'_> {
    const INSERT: &'static str = VERB;
    // Only one transaction writes at a time.
    const FOR_SHARE: &'static str = "";
    const FOR_UPDATE: &'static str = "";
    const FOR_UPDATE_SKIPPING: &'static str = "";
    const ORDERS_EVENTS: bool = true;

    fn query(
        &mut self,
        sql: &str,
        parameters: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, SqlError>> + Send {
        ready(self.query_now(sql, parameters).map_err(|error| sql_error(&error)))
    }

    fn execute(&mut self, sql: &str, parameters: &[Value<'_>]) -> impl Future<Output = Result<u64, SqlError>> + Send {
        ready(self.execute_now(sql, parameters).map_err(|error| sql_error(&error)))
    }

    fn execute_many(
        &mut self,
        sql: &str,
        parameters: &[Vec<Value<'_>>],
    ) -> impl Future<Output = Result<Vec<u64>, SqlError>> + Send {
        ready(self.execute_all_now(sql, parameters).map_err(|error| sql_error(&error)))
    }

    fn execute_with(&mut self, table: Table<'_>, sql: &str) -> impl Future<Output = Result<u64, SqlError>> + Send {
        ready(self.execute_with_now(table, sql).map_err(|error| sql_error(&error)))
    }

    fn insert(&mut self, rows: Rows<'_>) -> impl Future<Output = Result<(), SqlError>> + Send {
        ready(self.insert_now(rows).map_err(|error| sql_error(&error)))
    }

    fn lock_integration(&mut self) -> impl Future<Output = Result<(), SqlError>> + Send {
        ready(Ok(()))
    }

    fn unchanged_since(&self, generation: Generation) -> bool {
        self.generation == Some(generation)
    }

    fn revision(&mut self) -> impl Future<Output = Result<Revision, SqlError>> + Send {
        // Every change writes an event, and positions are given out in the order of the commits.
        let rows = self.query_now("SELECT COALESCE(MAX(position), 0) FROM event_batches", &[]);
        let revision = rows
            .map_err(|error| sql_error(&error))
            .and_then(|rows| rows.first().map_or(Err(SqlError::Corrupt("no revision".to_owned())), |row| row.count(0)));
        ready(revision)
    }
}

/// The statement on so many rows of a table, cached.
fn statement_with(table: &Table<'_>, rows: usize, sql: &str) -> Arc<str> {
    /// By the statement itself.
    type BySql = BTreeMap<String, Arc<str>>;
    static MADE: Mutex<BTreeMap<(&str, usize), BySql>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let of_this_size = made.entry((table.name, rows)).or_default();
    if let Some(statement) = of_this_size.get(sql) {
        return Arc::clone(statement);
    }
    let row = format!("({})", vec!["?"; table.columns.len()].join(", "));
    let statement: Arc<str> = table.statement(&format!("VALUES {}", vec![row.as_str(); rows].join(", ")), sql).into();
    of_this_size.insert(sql.to_owned(), Arc::clone(&statement));
    statement
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Blob(bytes) => ValueRef::Blob(bytes),
            Self::Id(id) => ValueRef::Text(id.as_str().as_bytes()),
            Self::Integer(integer) => ValueRef::Integer(*integer),
            Self::Null => ValueRef::Null,
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

fn read(value: ValueRef<'_>) -> Value<'static> {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => Value::Integer(integer),
        ValueRef::Blob(bytes) => Value::Blob(Cow::Owned(bytes.to_vec())),
        // Text that is not UTF-8 was not written by this program; as bytes it fails to be read as text.
        ValueRef::Text(bytes) => {
            let text = String::from_utf8(bytes.to_vec());
            text.map_or_else(|error| Value::Blob(Cow::Owned(error.into_bytes())), |text| Value::Text(Cow::Owned(text)))
        }
        // The schema has no such column.
        ValueRef::Real(_) => Value::Null,
    }
}
