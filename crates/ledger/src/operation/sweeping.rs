//! Sweeps: work on rows of all tenants, in batches. A row that cannot be read is skipped and reported at the end: it
//! must not block the rows of other tenants.

use std::collections::BTreeSet;

use toolgate_gate::refusal::{Code, Refusal};

use super::Operation;
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Row, SqlError};

/// The result of one batch.
pub struct Swept {
    /// The number of rows processed.
    pub done: u32,
    /// Whether the batch was full, so that there may be more.
    pub full: bool,
    /// The rows that cannot be read.
    pub unreadable: Vec<String>,
}

/// Rows as they were read.
pub struct Readable<T> {
    /// Those that can be.
    pub items: Vec<T>,
    /// What is wrong with the others.
    pub unreadable: Vec<String>,
}

impl<T> Readable<T> {
    pub fn of(rows: &[Row], read: impl Fn(&Row) -> Result<T, SqlError>) -> Self {
        let mut readable = Self { items: Vec::with_capacity(rows.len()), unreadable: Vec::new() };
        for row in rows {
            match read(row) {
                Ok(item) => readable.items.push(item),
                Err(error) => readable.unreadable.push(error.to_string()),
            }
        }
        readable
    }

    /// The readable items; the others are only logged.
    pub fn logged(self) -> Vec<T> {
        for reason in &self.unreadable {
            tracing::error!(%reason, "skipping a row");
        }
        self.items
    }
}

/// The result of all batches.
#[derive(Default)]
pub struct Sweep {
    total: u64,
    unreadable: BTreeSet<String>,
}

impl Sweep {
    pub fn add(&mut self, batch: Swept) {
        self.total += u64::from(batch.done);
        self.unreadable.extend(batch.unreadable);
    }

    pub fn join(&mut self, other: Self) {
        self.total += other.total;
        self.unreadable.extend(other.unreadable);
    }

    /// The number of unreadable rows: they stay in place, ahead of the next batch.
    pub fn passed_over(&self) -> u32 {
        u32::try_from(self.unreadable.len()).unwrap_or(u32::MAX)
    }

    /// The number of rows processed, or which could not be.
    pub fn report(self) -> Result<u64, Refusal> {
        let Some(first) = self.unreadable.first() else { return Ok(self.total) };
        let reason = format!(
            "skipped {} rows and processed all others: {first}; restore them from a backup",
            self.unreadable.len()
        );
        Err(Refusal::new(Code::Internal, reason))
    }
}

impl<E: Engine> SqlLedger<E> {
    /// Runs an operation, with the number of rows to skip, until a batch is not full.
    pub(super) async fn in_batches<O: Operation<Output = Swept>>(
        &self,
        operation: impl Fn(u32) -> O + Send + Sync,
    ) -> Result<Sweep, Refusal> {
        let mut sweep = Sweep::default();
        loop {
            let batch = self.engine.write(operation(sweep.passed_over())).await?;
            let full = batch.full;
            sweep.add(batch);
            if !full {
                return Ok(sweep);
            }
        }
    }
}
