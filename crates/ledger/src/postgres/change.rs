//! Changes as statements with parameters. Any number of rows is inserted by one statement: the cost of a statement, on
//! both sides, exceeds that of a row.

use deadpool_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Statement};

use super::transaction::bound;
use crate::sql::Value;
use crate::transaction::{Change, ColumnType, INSERT, Insert, Rows, Table, insert_statement};

/// A change with a prepared statement.
pub(super) struct PreparedChange<'a> {
    statement: Statement,
    parameters: Vec<Parameters<'a>>,
}

/// The parameters of one statement.
pub(super) enum Parameters<'a> {
    /// A value for each.
    Values(&'a [Value<'a>]),
    /// An array for each.
    Columns(Vec<Vec<&'a Value<'a>>>),
}

impl<'a> PreparedChange<'a> {
    /// `None` if there is nothing to change.
    pub(super) async fn new(transaction: &Transaction<'_>, change: &Change<'a>) -> Result<Option<Self>, Error> {
        match *change {
            Change::Each(_, []) | Change::Insert(Rows { rows: [], .. }) | Change::With(Table { rows: [], .. }, _) => {
                Ok(None)
            }
            Change::With(table, sql) => {
                let statement = transaction.prepare_cached(&table.statement(&arrays(table), sql)).await?;
                let columns = by_column(table.rows, table.columns.len());
                Ok(Some(Self { statement, parameters: vec![Parameters::Columns(columns)] }))
            }
            Change::Each(sql, parameters) => {
                let statement = transaction.prepare_cached(sql).await?;
                Ok(Some(Self { statement, parameters: parameters.iter().map(|row| Parameters::Values(row)).collect() }))
            }
            Change::Insert(rows) => {
                let one =
                    insert_statement(Insert { otherwise: rows.otherwise, ..INSERT }, rows.into, 1, rows.columns());
                let one = transaction.prepare_cached(&one).await?;
                if let [row] = rows.rows {
                    return Ok(Some(Self { statement: one, parameters: vec![Parameters::Values(row)] }));
                }
                let statement = transaction.prepare_cached(&insert_arrays(rows, one.params())).await?;
                Ok(Some(Self {
                    statement,
                    parameters: vec![Parameters::Columns(by_column(rows.rows, rows.columns()))],
                }))
            }
        }
    }

    /// The statements of this change, in order.
    pub(super) fn statements(self) -> impl Iterator<Item = (Statement, Parameters<'a>)> {
        let Self { statement, parameters } = self;
        parameters.into_iter().map(move |parameters| (statement.clone(), parameters))
    }
}

impl Parameters<'_> {
    pub(super) fn bound(&self) -> Vec<&(dyn ToSql + Sync)> {
        match self {
            Self::Values(values) => bound(values),
            Self::Columns(columns) => columns.iter().map(|column| column as &(dyn ToSql + Sync)).collect(),
        }
    }
}

/// An INSERT that takes an array of these types for each column.
fn insert_arrays(rows: Rows<'_>, types: &[Type]) -> String {
    let Rows { into, otherwise, .. } = rows;
    let arrays = types.iter().zip(1..).map(|(kind, place)| format!("${place}::{}[]", kind.name()));
    let arrays = arrays.collect::<Vec<_>>().join(", ");
    format!("INSERT INTO {into} SELECT * FROM unnest({arrays}) {otherwise}")
}

/// The rows of a table, from an array for each column.
fn arrays(table: Table<'_>) -> String {
    let arrays = table.columns.iter().zip(1..).map(|((_, kind), place)| match kind {
        ColumnType::Integer => format!("${place}::int8[]"),
        ColumnType::Text => format!("${place}::text[]"),
    });
    format!("SELECT * FROM unnest({})", arrays.collect::<Vec<_>>().join(", "))
}

/// Every column from the first row to the last.
fn by_column<'a>(rows: &'a [Vec<Value<'a>>], width: usize) -> Vec<Vec<&'a Value<'a>>> {
    let mut columns: Vec<_> = (0..width).map(|_| Vec::with_capacity(rows.len())).collect();
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    columns
}
