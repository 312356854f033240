//! Commands of one kind that one transaction carries out together: what is the same for all of them, such as a busy
//! grant's counter, is read and written once.

use rusqlite::Connection;
use toolgate_gate::ports::ledger::Generation;

use super::{Answer, in_savepoint};
use crate::operation::Joint;
use crate::sql::{Failure, SqlError, unavailable};

/// Those that wait for the transaction.
pub(super) struct Company<J: Joint> {
    parts: Vec<J::Part>,
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
    /// One more.
    pub(super) fn take(&mut self, part: J::Part, answer: Answer<J>) {
        self.parts.push(part);
        self.answers.push(answer);
    }

    /// Carries all of them out.
    pub(super) fn run(self, connection: &mut Connection, generation: Generation) -> Ended<J> {
        let outcomes =
            if self.parts.is_empty() { Vec::new() } else { together::<J>(self.parts, connection, generation) };
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
    parts: Vec<J::Part>,
    connection: &mut Connection,
    generation: Generation,
) -> Vec<Result<J::Answer, Failure>> {
    // An error before has ended the transaction: what would be written now would be another one.
    if connection.is_autocommit() {
        return parts.iter().map(|_| Err(ended())).collect();
    }
    let alone = parts.len() == 1;
    let all = J::of(parts);
    match in_savepoint(connection, &all, generation) {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(failure) if alone => vec![Err(failure)],
        // One of them may be the reason: each by itself.
        Err(_) => {
            let parts = all.into_parts().into_iter();
            parts.flat_map(|part| together::<J>(vec![part], connection, generation)).collect()
        }
    }
}

fn ended() -> Failure {
    Failure::Refused(unavailable())
}
