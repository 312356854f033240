//! Commands of one kind that one transaction carries out together: what is the same for all of them, such as a busy
//! grant's counter, is read and written once.

use rusqlite::Connection;
use toolgate_gate::ports::ledger::Generation;

use super::{Answer, SqliteTransaction, in_savepoint, run_ready};
use crate::operation::Joint;
use crate::sql::{Failure, SqlError, unavailable};

/// One that comes to wait for the transaction: as it is, or made ready for it beforehand.
pub(in crate::sqlite) enum Entrant<J: Joint> {
    Command(J::Command),
    Part(J::Part),
}

/// Those that wait for the transaction.
pub(super) struct Company<J: Joint> {
    parts: Vec<J::Part>,
    answers: Vec<Answer<J>>,
}

/// Those whom the transaction carries.
pub(super) struct Aboard<J: Joint> {
    /// `None` where nobody waits.
    all: Option<J>,
    answers: Vec<Answer<J>>,
}

/// Those that wait for the flush.
pub(super) struct Ended<J: Joint> {
    answers: Vec<Answer<J>>,
    outcomes: Vec<Result<J::Answer, Failure>>,
}

impl<J: Joint> Default for Company<J> {
    fn default() -> Self {
        Self { parts: Vec::new(), answers: Vec::new() }
    }
}

impl<J: Joint> Company<J> {
    /// One more. One that cannot be made ready is told so, and leaves.
    pub(super) fn take(&mut self, entrant: Entrant<J>, answer: Answer<J>) {
        let ready = match entrant {
            Entrant::Command(command) => J::ready(command),
            Entrant::Part(part) => Ok(part),
        };
        match ready {
            Ok(part) => {
                self.parts.push(part);
                self.answers.push(answer);
            }
            // A caller that has gone away does not need the answer.
            Err(failure) => drop(answer.send(Err(failure))),
        }
    }

    /// All of them together.
    pub(super) fn board(self) -> Aboard<J> {
        let all = if self.parts.is_empty() { None } else { Some(J::of(self.parts)) };
        Aboard { all, answers: self.answers }
    }
}

impl<J: Joint> Aboard<J> {
    /// Carries all of them out. After a failure the transaction holds some of what they do, and must be rolled back.
    pub(super) fn run_at_once(
        &self,
        connection: &mut Connection,
        generation: Generation,
    ) -> Result<Vec<J::Answer>, Failure> {
        match &self.all {
            Some(all) => run_ready(all, &mut SqliteTransaction::at(connection, generation)),
            None => Ok(Vec::new()),
        }
    }

    /// What [`Self::run_at_once`] came to.
    pub(super) fn ended(self, answers: Vec<J::Answer>) -> Ended<J> {
        Ended { answers: self.answers, outcomes: answers.into_iter().map(Ok).collect() }
    }

    /// Carries all of them out; one that fails leaves nothing behind and does not touch the others.
    pub(super) fn run(self, connection: &mut Connection, generation: Generation) -> Ended<J> {
        let outcomes = match self.all {
            Some(all) => together(all, self.answers.len(), connection, generation),
            None => Vec::new(),
        };
        Ended { answers: self.answers, outcomes }
    }
}

impl<J: Joint> Ended<J> {
    /// Tells everybody what came of it.
    pub(super) fn acknowledge(self, durable: &Result<(), SqlError>) {
        for (answer, outcome) in self.answers.into_iter().zip(self.outcomes) {
            // A caller that has gone away does not need the answer.
            let _ = answer.send(durable.clone().map_err(Failure::Sql).and(outcome));
        }
    }
}

fn together<J: Joint>(
    all: J,
    count: usize,
    connection: &mut Connection,
    generation: Generation,
) -> Vec<Result<J::Answer, Failure>> {
    // An error before has ended the transaction: what would be written now would be another one.
    if connection.is_autocommit() {
        return (0..count).map(|_| Err(ended())).collect();
    }
    match in_savepoint(connection, &all, generation) {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(failure) if count == 1 => vec![Err(failure)],
        // One of them may be the reason: each by itself.
        Err(_) => {
            let parts = all.into_parts().into_iter();
            parts.flat_map(|part| together(J::of(vec![part]), 1, connection, generation)).collect()
        }
    }
}

fn ended() -> Failure {
    Failure::Refused(unavailable())
}
