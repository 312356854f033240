//! One agent at two replicas, which take turns.

use std::collections::BTreeSet;

use tokio::task::JoinSet;
use toolgate_gate::ports::ledger::{Admission, Admit};
use toolgate_model::id::InvocationId;
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::calls::{Caller, another};

/// One agent at two replicas.
#[derive(Clone)]
pub struct Replicas(pub [Caller; 2]);

impl Replicas {
    /// An agent in its own tenant.
    pub async fn of(fixture: &LedgerFixture) -> Self {
        let here = Caller::new(fixture).await;
        let there = here.at_replica(fixture).await;
        Self([here, there])
    }

    /// The agent at the first replica.
    pub fn here(&self) -> &Caller {
        &self.0[0]
    }

    /// The agent at the replica for this number.
    pub fn turn(&self, number: usize) -> &Caller {
        &self.0[number % 2]
    }

    /// The same replicas with a fresh key, so that rounds do not touch each other.
    pub async fn with_fresh_key(&self, round: usize) -> Self {
        let here = self.here();
        let key = here.tenant.key(&here.agent, &format!("key of round {round} in {}", here.tenant.id)).await.id;
        Self(self.0.clone().map(|caller| Caller { key, ..caller }))
    }

    /// Sends these calls concurrently, alternating between replicas, and returns their outcomes.
    pub async fn send(&self, calls: Vec<Admit>) -> Vec<(InvocationId, Admission)> {
        let mut attempts = JoinSet::new();
        for (number, call) in calls.into_iter().enumerate() {
            let caller = self.turn(number).clone();
            attempts.spawn(async move { (call.invocation.id, caller.send(call).await) });
        }
        attempts.join_all().await
    }
}

/// The same decision for so many calls.
pub fn many(call: &Admit, count: usize) -> Vec<Admit> {
    (0..count).map(|_| another(call)).collect()
}

/// Which of these calls were admitted.
pub fn admitted(outcomes: &[(InvocationId, Admission)]) -> BTreeSet<InvocationId> {
    let admitted = outcomes.iter().filter(|(_, outcome)| *outcome == Admission::Admitted);
    admitted.map(|(id, _)| *id).collect()
}

/// The recorded calls.
pub async fn recorded(caller: &Caller) -> BTreeSet<InvocationId> {
    caller.records().await.into_iter().map(|record| record.id).collect()
}
