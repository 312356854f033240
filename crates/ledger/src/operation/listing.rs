//! Paged lists: a SELECT whose conditions are added one filter at a time.

use toolgate_gate::ports::ledger::{Page, PageRequest};

use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::Transaction;

/// How many bytes of stored JSON one page has at most.
pub const PAGE_BYTES: u64 = 8 << 20;

/// The conditions of a list, with their parameters.
#[derive(Default)]
pub struct Conditions<'a> {
    sql: String,
    values: Vec<Value<'a>>,
}

impl<'a> Conditions<'a> {
    /// Adds `column operator value`.
    pub fn and(&mut self, column_and_operator: &str, value: impl Into<Value<'a>>) {
        self.values.push(value.into());
        let place = self.values.len();
        self.and_that(&format!("{column_and_operator} ${place}"));
    }

    /// Adds `column operator value` if there is a value to filter by.
    pub fn and_if(&mut self, column_and_operator: &str, value: Option<impl Into<Value<'a>>>) {
        if let Some(value) = value {
            self.and(column_and_operator, value);
        }
    }

    /// Adds a condition that names the place of its value, perhaps several times.
    pub fn and_at(&mut self, value: impl Into<Value<'a>>, condition: impl FnOnce(usize) -> String) {
        self.values.push(value.into());
        let place = self.values.len();
        self.and_that(&condition(place));
    }

    /// Adds `(columns) operator (values)`.
    pub fn and_row(&mut self, columns_and_operator: &str, values: impl IntoIterator<Item = Value<'a>>) {
        let first = self.values.len() + 1;
        self.values.extend(values);
        let places: Vec<_> = (first..=self.values.len()).map(|place| format!("${place}")).collect();
        self.and_that(&format!("{columns_and_operator} ({})", places.join(", ")));
    }

    /// Adds that a column has one of these values, if there are any to filter by.
    pub fn and_any(&mut self, column: &str, values: impl Iterator<Item = impl Into<Value<'a>>>) {
        let first = self.values.len() + 1;
        self.values.extend(values.map(Into::into));
        let last = self.values.len();
        if first <= last {
            let places: Vec<_> = (first..=last).map(|place| format!("${place}")).collect();
            self.and_that(&format!("{column} IN ({})", places.join(", ")));
        }
    }

    /// Adds a condition without a value.
    pub fn and_that(&mut self, condition: &str) {
        if !self.sql.is_empty() {
            self.sql.push_str(" AND ");
        }
        self.sql.push_str(condition);
    }

    /// Closes the bracket that the last condition opened.
    pub fn close(&mut self) {
        self.sql.push(')');
    }

    /// Reads one page in the order of a column, from the page's cursor on.
    pub async fn page<T: Transaction, Item>(
        self,
        transaction: &mut T,
        (columns, table, order): (&str, &str, &str),
        page: &PageRequest,
        read: impl Fn(&Row) -> Result<Item, SqlError>,
        cursor: impl Fn(&Item) -> String,
    ) -> Result<Page<Item>, Failure> {
        let select = |condition: &str| format!("SELECT {columns} FROM {table} WHERE {condition}");
        self.page_of(transaction, select, order, page, read, cursor).await
    }

    /// Like [`Conditions::page`], for rows whose size, in SQL, differs much: a page ends before [`PAGE_BYTES`], and has one
    /// row at least.
    pub async fn page_within<T: Transaction, Item>(
        self,
        transaction: &mut T,
        (columns, table, order): (&str, &str, &str),
        size: &str,
        page: &PageRequest,
        read: impl Fn(&Row) -> Result<Item, SqlError>,
        cursor: impl Fn(&Item) -> String,
    ) -> Result<Page<Item>, Failure> {
        let limit = self.fitting(transaction, (size, table, order), page.limit).await?;
        let page = PageRequest { limit, ..page.clone() };
        self.page(transaction, (columns, table, order), &page, read, cursor).await
    }

    /// How many of the first rows fit into one page.
    pub async fn fitting<T: Transaction>(
        &self,
        transaction: &mut T,
        (size, table, order): (&str, &str, &str),
        limit: u32,
    ) -> Result<u32, Failure> {
        let mut values = self.values.clone();
        values.push(Value::from(limit));
        let (condition, last) = (&self.sql, values.len());
        let sql =
            format!("SELECT id, CAST({size} AS BIGINT) FROM {table} WHERE {condition} ORDER BY {order} LIMIT ${last}");
        let (mut bytes, mut count) = (0_u64, 0_u32);
        for row in &transaction.query(&sql, &values).await? {
            bytes = bytes.saturating_add(row.count(1)?);
            if bytes > PAGE_BYTES {
                break;
            }
            count = count.saturating_add(1);
        }
        Ok(count.max(1))
    }

    /// Like [`Conditions::page`], for any selected columns.
    pub async fn page_of<T: Transaction, Item>(
        mut self,
        transaction: &mut T,
        select: impl FnOnce(&str) -> String,
        order: &str,
        page: &PageRequest,
        read: impl Fn(&Row) -> Result<Item, SqlError>,
        cursor: impl Fn(&Item) -> String,
    ) -> Result<Page<Item>, Failure> {
        // One more than requested shows whether there is a next page.
        self.values.push(Value::from(page.limit.saturating_add(1)));
        let (select, limit) = (select(&self.sql), self.values.len());
        let sql = format!("{select} ORDER BY {order} LIMIT ${limit}");
        let rows = transaction.query(&sql, &self.values).await?;
        let items = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(Page::cut(items, page.limit, cursor))
    }

    /// The condition and its parameters.
    pub fn finish(self) -> (String, Vec<Value<'a>>) {
        (self.sql, self.values)
    }
}

/// `$1, $2, ...` for this many parameters.
pub fn placeholders(count: usize) -> String {
    (1..=count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
}

/// Placeholders for these values, the last one repeated up to a power of two, so that lists of all lengths need few
/// prepared statements.
pub fn padded(mut values: Vec<Value<'_>>) -> (String, Vec<Value<'_>>) {
    if let Some(last) = values.last().cloned() {
        values.resize(values.len().next_power_of_two(), last);
    }
    (placeholders(values.len()), values)
}
