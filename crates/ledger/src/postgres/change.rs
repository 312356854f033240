//! Changes as statements with parameters. Several rows are inserted by one statement however many they are: what a
//! statement costs by itself, on both sides, is more than what a row costs.

use bytes::BytesMut;
use deadpool_postgres::Transaction;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Error, Statement};

use super::transaction::bound;
use crate::sql::Value;
use crate::transaction::{Change, INSERT, Insert, Rows, insert_statement};

/// A change whose statement the server knows.
pub(super) struct PreparedChange<'a> {
    statement: Statement,
    parameters: Vec<Parameters<'a>>,
}

/// The parameters of one statement.
pub(super) enum Parameters<'a> {
    /// A value for each.
    Values(&'a [Value]),
    /// What stands in a row.
    Cells(Vec<Cell<'a>>),
    /// An array for each.
    Columns(Vec<Vec<Cell<'a>>>),
}

/// What stands in a column of a row.
#[derive(Debug)]
pub(super) enum Cell<'a> {
    Value(&'a Value),
    Number(i64),
}

impl<'a> PreparedChange<'a> {
    /// `None` where there is nothing to change.
    pub(super) async fn new(transaction: &Transaction<'_>, change: &Change<'a>) -> Result<Option<Self>, Error> {
        match *change {
            Change::Each(_, []) | Change::Insert(Rows { rows: [], .. }) => Ok(None),
            Change::Each(sql, parameters) => {
                let statement = transaction.prepare_cached(sql).await?;
                Ok(Some(Self { statement, parameters: parameters.iter().map(|row| Parameters::Values(row)).collect() }))
            }
            Change::Insert(rows) => {
                let one =
                    insert_statement(Insert { otherwise: rows.otherwise, ..INSERT }, rows.into, 1, rows.columns());
                let one = transaction.prepare_cached(&one).await?;
                let columns = by_column(rows);
                if let [_] = rows.rows {
                    let row = columns.into_iter().flatten().collect();
                    return Ok(Some(Self { statement: one, parameters: vec![Parameters::Cells(row)] }));
                }
                let statement = transaction.prepare_cached(&insert_arrays(rows, one.params())).await?;
                Ok(Some(Self { statement, parameters: vec![Parameters::Columns(columns)] }))
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
    /// As the client takes them.
    pub(super) fn bound(&self) -> Vec<&(dyn ToSql + Sync)> {
        match self {
            Self::Values(values) => bound(values),
            Self::Cells(row) => row.iter().map(|cell| cell as &(dyn ToSql + Sync)).collect(),
            Self::Columns(columns) => columns.iter().map(|column| column as &(dyn ToSql + Sync)).collect(),
        }
    }
}

/// An INSERT that takes an array for each column, of these types.
fn insert_arrays(rows: Rows<'_>, types: &[Type]) -> String {
    let Rows { into, otherwise, .. } = rows;
    let arrays = types.iter().zip(1..).map(|(kind, place)| format!("${place}::{}[]", kind.name()));
    let arrays = arrays.collect::<Vec<_>>().join(", ");
    format!("INSERT INTO {into} SELECT * FROM unnest({arrays}) {otherwise}")
}

/// Every column from the first row to the last.
fn by_column(rows: Rows<'_>) -> Vec<Vec<Cell<'_>>> {
    let mut columns: Vec<_> = (0..rows.columns()).map(|_| Vec::with_capacity(rows.rows.len())).collect();
    let numbers = rows.numbers.iter().map(|number| Some(Cell::Number(*number)));
    for (row, number) in rows.rows.iter().zip(numbers.chain(std::iter::repeat_with(|| None))) {
        for (column, cell) in columns.iter_mut().zip(row.iter().map(Cell::Value).chain(number)) {
            column.push(cell);
        }
    }
    columns
}

impl ToSql for Cell<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Value(value) => value.to_sql(kind, out),
            Self::Number(number) => Value::Integer(*number).to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        <Value as ToSql>::accepts(kind)
    }

    to_sql_checked!();
}
