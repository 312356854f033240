//! Random calls through a lineage of limited grants, on the ledger and on a plain list of times side by side.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use toolgate_gate::ports::ledger::{Admission, Admit};
use toolgate_gate::refusal::Code;
use toolgate_model::grant::Grant;
use toolgate_model::time::Timestamp;
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::calls::{Caller, refusal_of};
use super::support::detail;

const HOUR: i64 = 3_600_000;

#[derive(Debug, Clone)]
enum Step {
    /// This many concurrent calls through the grant with this number, or the last one.
    Call { grant: usize, count: usize },
    /// The clock moves by so many milliseconds, back where negative.
    Move(i64),
}

/// The limits of one to three grants, each delegated from the previous one, and the steps.
type Story = (Vec<Option<u64>>, Vec<Step>);

fn stories(back: bool) -> impl Strategy<Value = Story> {
    let limit = prop_oneof![1 => Just(None), 6 => (0..6_u64).prop_map(Some)];
    let forward = prop_oneof![0..5_i64, 0..HOUR / 2, HOUR - 3..HOUR + 3, Just(HOUR)];
    let by = match back {
        true => prop_oneof![2 => forward.clone(), 1 => (0..2 * HOUR).prop_map(|millis| -millis)].boxed(),
        false => forward.boxed(),
    };
    let call = (0..3_usize, 1..5_usize).prop_map(|(grant, count)| Step::Call { grant, count });
    let step = prop_oneof![3 => call, 2 => by.prop_map(Step::Move)];
    (prop::collection::vec(limit, 1..=3), prop::collection::vec(step, 1..24))
}

#[test]
fn on_sqlite_exactly_what_has_room_is_admitted() {
    play(48, LedgerFixture::sqlite, false);
}

#[test]
fn on_postgres_exactly_what_has_room_is_admitted() {
    play(16, LedgerFixture::postgres, false);
}

#[test]
fn on_sqlite_no_hour_has_too_many_calls_whatever_the_clock_does() {
    play(32, LedgerFixture::sqlite, true);
}

#[test]
fn on_postgres_no_hour_has_too_many_calls_whatever_the_clock_does() {
    play(12, LedgerFixture::postgres, true);
}

fn play(cases: u32, open: impl AsyncFn() -> LedgerFixture, back: bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let fixture = runtime.block_on(open());
    let config = Config { cases, max_shrink_iters: 256, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&stories(back), |(limits, steps)| {
        runtime.block_on(async {
            let mut game = Game::begin(Caller::new(&fixture).await, limits).await;
            for step in &steps {
                game.play(&fixture, step, !back).await?;
            }
            game.check()
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

struct Game {
    caller: Caller,
    grants: Vec<Grant>,
    limits: Vec<Option<u64>>,
    /// The times of calls through each grant and its descendants.
    times: Vec<Vec<i64>>,
}

impl Game {
    async fn begin(caller: Caller, limits: Vec<Option<u64>>) -> Self {
        let mut grants = vec![caller.grant(None).await];
        while grants.len() < limits.len() {
            grants.push(caller.delegate(grants.last().unwrap(), None).await);
        }
        let times = vec![Vec::new(); limits.len()];
        Self { caller, grants, limits, times }
    }

    async fn play(&mut self, fixture: &LedgerFixture, step: &Step, exact: bool) -> Result<(), TestCaseError> {
        let now = self.caller.tenant.now().as_millis();
        let (grant, count) = match step {
            Step::Move(millis) => {
                fixture.clock().set(Timestamp::from_millis(now + millis).unwrap());
                return Ok(());
            }
            Step::Call { grant, count } => ((*grant).min(self.grants.len() - 1), *count),
        };
        let mut calls = Vec::new();
        for _ in 0..count {
            calls.push(self.call(grant).await);
        }
        let sent = calls.into_iter().map(|call| self.caller.send(call));
        let outcomes = futures_util::future::join_all(sent).await;
        let admitted = outcomes.iter().filter(|outcome| **outcome == Admission::Admitted).count();
        if exact {
            prop_assert_eq!(admitted, self.room(grant, now).min(count));
        }
        for times in self.times.iter_mut().take(grant + 1) {
            times.extend(std::iter::repeat_n(now, admitted));
        }
        for outcome in outcomes.into_iter().filter(|outcome| *outcome != Admission::Admitted) {
            let wait = detail(&refusal_of(outcome, Code::GrantRateLimited), "retry_after_seconds");
            if exact {
                prop_assert_eq!(wait, self.wait(grant, now));
            }
        }
        Ok(())
    }

    /// A call through this grant. The limits are stated with the call, so that they need not narrow.
    async fn call(&self, grant: usize) -> Admit {
        let lineage = self.grants.iter().zip(&self.limits).take(grant + 1).map(|(grant, limit)| (grant.id, *limit));
        Admit { lineage: lineage.collect(), usable_until: None, ..self.caller.call(&self.grants[grant]).await }
    }

    /// The remaining capacity of this grant and all its ancestors.
    fn room(&self, grant: usize, now: i64) -> usize {
        let limited = self.limits.iter().zip(&self.times).take(grant + 1);
        let room = limited.filter_map(|(limit, times)| {
            let limit = usize::try_from((*limit)?).unwrap();
            Some(limit - times.iter().filter(|time| **time > now - HOUR).count())
        });
        room.min().unwrap_or(usize::MAX)
    }

    /// The seconds until there is capacity for one; null if there never is.
    fn wait(&self, grant: usize, now: i64) -> Value {
        if self.limits.iter().take(grant + 1).any(|limit| *limit == Some(0)) {
            return Value::Null;
        }
        let seconds = (1..=3600).find(|seconds| self.room(grant, now + seconds * 1000) > 0);
        json!(seconds)
    }

    /// No hour has more calls through a grant than it allows.
    fn check(&self) -> Result<(), TestCaseError> {
        for (limit, times) in self.limits.iter().zip(&self.times) {
            let Some(limit) = limit else { continue };
            for begin in times {
                let hour = *begin..begin + HOUR;
                let calls = times.iter().filter(|time| hour.contains(time)).count();
                prop_assert!(calls <= usize::try_from(*limit).unwrap(), "{} calls, and {} is the limit", calls, limit);
            }
        }
        Ok(())
    }
}
