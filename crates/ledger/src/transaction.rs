//! The transaction interface of operations. On SQLite every future is ready at once; on PostgreSQL it waits for the
//! server.
//!
//! Statements use the SQL that both engines share, with parameters `$1`, `$2`, ... which must first appear in this
//! order.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_gate::ports::ledger::{Generation, Revision};

use crate::sql::{Row, SqlError, Value};

/// Builds the parameters of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*][..] };
}
pub(crate) use values;

/// A statement that returns rows, with its parameters.
pub type Query<'a> = (String, Vec<Value<'a>>);

/// One transaction, or one consistent read.
pub trait Transaction: Send {
    /// The beginning of an INSERT.
    const INSERT: &'static str;
    /// Appended to a SELECT: locks these rows against changes until this transaction ends. Empty if only one
    /// transaction writes at a time.
    const FOR_SHARE: &'static str;
    /// Appended to a SELECT: locks these rows against changes and share locks until this transaction ends.
    const FOR_UPDATE: &'static str;
    /// Like [`Transaction::FOR_UPDATE`], passing over rows that another transaction holds.
    const FOR_UPDATE_SKIPPING: &'static str;

    /// Whether transactions are committed one after the other, so that an event has its log position as soon as it is
    /// written. Otherwise it gets one when it is integrated.
    const ORDERS_EVENTS: bool;

    /// Runs a statement and returns its rows.
    fn query(&mut self, sql: &str, parameters: &[Value<'_>])
    -> impl Future<Output = Result<Vec<Row>, SqlError>> + Send;

    /// Runs statements in this order and returns the rows of each, in one round trip if there is a server.
    fn query_each(&mut self, queries: &[Query<'_>]) -> impl Future<Output = Result<Vec<Vec<Row>>, SqlError>> + Send {
        async move {
            let mut results = Vec::with_capacity(queries.len());
            for (sql, parameters) in queries {
                results.push(self.query(sql, parameters).await?);
            }
            Ok(results)
        }
    }

    /// Runs a statement and returns the number of changed rows.
    fn execute(&mut self, sql: &str, parameters: &[Value<'_>]) -> impl Future<Output = Result<u64, SqlError>> + Send;

    /// Runs one statement for each set of parameters and returns the numbers of changed rows.
    fn execute_many(
        &mut self,
        sql: &str,
        parameters: &[Vec<Value<'_>>],
    ) -> impl Future<Output = Result<Vec<u64>, SqlError>> + Send;

    /// Runs a statement that reads these rows as a table, and returns the number of changed rows.
    fn execute_with(&mut self, table: Table<'_>, sql: &str) -> impl Future<Output = Result<u64, SqlError>> + Send;

    fn insert(&mut self, rows: Rows<'_>) -> impl Future<Output = Result<(), SqlError>> + Send;

    /// Makes changes in this order and returns for each the number of rows changed by its statements; inserts may
    /// return none. One round trip if there is a server.
    fn change_each(&mut self, changes: &[Change<'_>]) -> impl Future<Output = Result<Vec<Vec<u64>>, SqlError>> + Send {
        async move {
            let mut changed = Vec::with_capacity(changes.len());
            for change in changes {
                changed.push(match change {
                    Change::Insert(rows) => self.insert(*rows).await.map(|()| Vec::new())?,
                    Change::Each(sql, parameters) => self.execute_many(sql, parameters).await?,
                    Change::With(table, sql) => vec![self.execute_with(*table, sql).await?],
                });
            }
            Ok(changed)
        }
    }

    /// Inserts many rows of the same columns; `into` is the table with its columns, as in `keys (id, tenant)`.
    fn insert_many(
        &mut self,
        into: &str,
        rows: &[Vec<Value<'_>>],
    ) -> impl Future<Output = Result<(), SqlError>> + Send {
        async move { self.insert(Rows::new(into, rows)).await }
    }

    /// Keeps every other transaction from integrating events until this one ends.
    fn lock_integration(&mut self) -> impl Future<Output = Result<(), SqlError>> + Send;

    /// Whether authority is known to be unchanged since then, up to what this transaction sees. If unknown, false: then
    /// the rows must be read.
    fn unchanged_since(&self, generation: Generation) -> bool;

    /// The revision that every read includes which begins after this returns.
    fn revision(&mut self) -> impl Future<Output = Result<Revision, SqlError>> + Send;

    /// Runs a statement that returns one row or none.
    fn query_optional(
        &mut self,
        sql: &str,
        parameters: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<Row>, SqlError>> + Send {
        async { Ok(self.query(sql, parameters).await?.into_iter().next()) }
    }
}

/// A change to rows.
#[derive(Clone, Copy)]
pub enum Change<'a> {
    Insert(Rows<'a>),
    /// One statement for each set of parameters.
    Each(&'a str, &'a [Vec<Value<'a>>]),
    /// One statement that reads rows as a table.
    With(Table<'a>, &'a str),
}

/// Rows that a statement reads as a table.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    /// Its name in the statement.
    pub name: &'static str,
    pub columns: &'static [(&'static str, ColumnType)],
    /// The statement is not run if there are none.
    pub rows: &'a [Vec<Value<'a>>],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    Integer,
    Text,
}

impl Table<'_> {
    /// The statement, with its rows given by this expression.
    pub(crate) fn statement(&self, rows: &str, sql: &str) -> String {
        let columns: Vec<&str> = self.columns.iter().map(|(column, _)| *column).collect();
        format!("WITH {} ({}) AS ({rows}) {sql}", self.name, columns.join(", "))
    }
}

/// Rows with the same columns to insert.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// The table with its columns, as in `keys (id, tenant)`.
    pub into: &'a str,
    pub rows: &'a [Vec<Value<'a>>],
    /// What happens to existing rows, as in `ON CONFLICT (id) DO NOTHING`: then the rows must differ in the conflict
    /// columns. Empty if all must be new.
    pub otherwise: &'static str,
}

impl<'a> Rows<'a> {
    /// Rows that must all be new, with everything in them.
    pub fn new(into: &'a str, rows: &'a [Vec<Value<'a>>]) -> Self {
        Self { into, rows, otherwise: "" }
    }

    pub(crate) fn columns(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }
}

/// How rows are inserted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Insert {
    /// The text before the table.
    pub(crate) verb: &'static str,
    /// The text after the rows.
    pub(crate) otherwise: &'static str,
}

/// Rows that must all be new.
pub(crate) const INSERT: Insert = Insert { verb: "INSERT INTO", otherwise: "" };

/// Statements by the table with its columns.
type ByTable = BTreeMap<String, Arc<str>>;

/// An INSERT of this many rows and columns, cached.
pub(crate) fn insert_statement(insert: Insert, into: &str, rows: usize, columns: usize) -> Arc<str> {
    static MADE: Mutex<BTreeMap<(Insert, usize, usize), ByTable>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let of_this_size = made.entry((insert, rows, columns)).or_default();
    if let Some(statement) = of_this_size.get(into) {
        return Arc::clone(statement);
    }
    let statement: Arc<str> = write_insert_statement(insert, into, rows, columns).into();
    of_this_size.insert(into.to_owned(), Arc::clone(&statement));
    statement
}

fn write_insert_statement(insert: Insert, into: &str, rows: usize, columns: usize) -> String {
    let row = |number: usize| {
        let places = (1..=columns).map(|column| format!("${}", number * columns + column));
        format!("({})", places.collect::<Vec<_>>().join(", "))
    };
    let rows = (0..rows).map(row).collect::<Vec<_>>().join(", ");
    format!("{} {into} VALUES {rows} {}", insert.verb, insert.otherwise)
}
