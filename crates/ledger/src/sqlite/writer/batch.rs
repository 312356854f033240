//! Batches: commands of one kind that one transaction commits together. What they share, such as a busy grant's
//! counter, is read and written once.

use rusqlite::Connection;
use toolgate_gate::ports::ledger::Generation;

use super::{ReplySender, SqliteTransaction, in_savepoint, run_ready};
use crate::operation::BatchOperation;
use crate::sql::{Failure, SqlError, unavailable};

/// One command on its way into the next batch: as it is, or already prepared.
pub(in crate::sqlite) enum Submission<J: BatchOperation> {
    Command(J::Command),
    Part(J::Part),
}

/// The commands that wait for the transaction.
pub(super) struct Batch<J: BatchOperation> {
    parts: Vec<J::Part>,
    replies: Vec<ReplySender<J>>,
}

/// The commands that the transaction runs.
pub(super) struct RunningBatch<J: BatchOperation> {
    /// `None` for an empty batch.
    all: Option<J>,
    replies: Vec<ReplySender<J>>,
}

/// The outcomes of a batch, which wait for the flush.
pub(super) struct BatchResult<J: BatchOperation> {
    replies: Vec<ReplySender<J>>,
    outcomes: Vec<Result<J::Reply, Failure>>,
}

impl<J: BatchOperation> Default for Batch<J> {
    fn default() -> Self {
        Self { parts: Vec::new(), replies: Vec::new() }
    }
}

impl<J: BatchOperation> Batch<J> {
    /// Adds a command. One that cannot be prepared is refused at once.
    pub(super) fn take(&mut self, submission: Submission<J>, reply: ReplySender<J>) {
        let ready = match submission {
            Submission::Command(command) => J::ready(command),
            Submission::Part(part) => Ok(part),
        };
        match ready {
            Ok(part) => {
                self.parts.push(part);
                self.replies.push(reply);
            }
            // A caller that has disconnected does not need the result.
            Err(failure) => drop(reply.send(Err(failure))),
        }
    }

    pub(super) fn start(self) -> RunningBatch<J> {
        let all = if self.parts.is_empty() { None } else { Some(J::of(self.parts)) };
        RunningBatch { all, replies: self.replies }
    }
}

impl<J: BatchOperation> RunningBatch<J> {
    /// Runs all of them. After a failure the transaction contains some of their changes, and must be rolled back.
    pub(super) fn run_at_once(
        &self,
        connection: &mut Connection,
        generation: Generation,
    ) -> Result<Vec<J::Reply>, Failure> {
        match &self.all {
            Some(all) => run_ready(all, &mut SqliteTransaction::at(connection, generation)),
            None => Ok(Vec::new()),
        }
    }

    /// The result of [`Self::run_at_once`].
    pub(super) fn ended(self, replies: Vec<J::Reply>) -> BatchResult<J> {
        BatchResult { replies: self.replies, outcomes: replies.into_iter().map(Ok).collect() }
    }

    /// Carries all of them out; one that fails leaves nothing behind and does not touch the others.
    pub(super) fn run(self, connection: &mut Connection, generation: Generation) -> BatchResult<J> {
        let outcomes = match self.all {
            Some(all) => together(all, self.replies.len(), connection, generation),
            None => Vec::new(),
        };
        BatchResult { replies: self.replies, outcomes }
    }
}

impl<J: BatchOperation> BatchResult<J> {
    /// Sends each its outcome.
    pub(super) fn acknowledge(self, durable: &Result<(), SqlError>) {
        for (reply, outcome) in self.replies.into_iter().zip(self.outcomes) {
            // A caller that has disconnected does not need the result.
            let _ = reply.send(durable.clone().map_err(Failure::Sql).and(outcome));
        }
    }
}

fn together<J: BatchOperation>(
    all: J,
    count: usize,
    connection: &mut Connection,
    generation: Generation,
) -> Vec<Result<J::Reply, Failure>> {
    // An earlier error has ended the transaction: a write now would be in another one.
    if connection.is_autocommit() {
        return (0..count).map(|_| Err(ended())).collect();
    }
    match in_savepoint(connection, &all, generation) {
        Ok(replies) => replies.into_iter().map(Ok).collect(),
        Err(failure) if count == 1 => vec![Err(failure)],
        // One of them may be the cause: each is run on its own.
        Err(_) => {
            let parts = all.into_parts().into_iter();
            parts.flat_map(|part| together(J::of(vec![part]), 1, connection, generation)).collect()
        }
    }
}

fn ended() -> Failure {
    Failure::Refused(unavailable())
}
