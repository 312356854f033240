//! How long the stages of a call took: an array of integers in its run state, filled from the monotonic clock. The
//! metrics, the log line and the spans of a call are built from it when the call has finished.

use std::time::Duration;

use crate::ports::clock::Clock;
use crate::refusal::Stage;

const STAGES: usize = Stage::ALL.len();

/// What a call waits for within a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The decision of an approver, in `approve`.
    Approval,
    /// The commit of the admission, in `admit`.
    AdmissionCommit,
    /// The commit of the settlement, in `settle`.
    SettlementCommit,
}

impl Wait {
    pub const ALL: [Self; 3] = [Self::Approval, Self::AdmissionCommit, Self::SettlementCommit];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::AdmissionCommit => "admission_commit",
            Self::SettlementCommit => "settlement_commit",
        }
    }
}

/// The times of one run of a call, in nanoseconds. A stage that runs again, because the call waited for an approver or
/// because its basis changed, counts once with its total time.
#[derive(Debug, Clone)]
pub struct StageTimes {
    begun: u64,
    /// When the current stage was entered.
    since: u64,
    current: Stage,
    /// Zero for a stage that was not reached.
    spent: [u64; STAGES],
    /// When a stage was first entered, relative to the beginning.
    entered: [u64; STAGES],
    waited: [u64; Wait::ALL.len()],
}

/// One stage of a finished call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTime {
    pub stage: Stage,
    /// From the beginning of the call until the stage was first entered.
    pub entered: Duration,
    pub spent: Duration,
}

impl Default for StageTimes {
    /// For a run that is not measured.
    fn default() -> Self {
        Self {
            begun: 0,
            since: 0,
            current: Stage::Identify,
            spent: [0; STAGES],
            entered: [0; STAGES],
            waited: [0; Wait::ALL.len()],
        }
    }
}

impl StageTimes {
    /// The first stage begins now.
    pub(super) fn start(clock: &dyn Clock) -> Self {
        let now = clock.monotonic_nanos();
        Self { begun: now, since: now, ..Self::default() }
    }

    /// Ends the current stage and begins another one.
    pub(super) fn enter(&mut self, stage: Stage, clock: &dyn Clock) {
        let now = clock.monotonic_nanos();
        self.end_stage(now);
        self.current = stage;
        if let (Some(0), Some(entered)) = (self.spent.get(stage as usize), self.entered.get_mut(stage as usize)) {
            *entered = now.saturating_sub(self.begun);
        }
    }

    /// Ends the last stage.
    pub(super) fn finish(&mut self, clock: &dyn Clock) {
        self.end_stage(clock.monotonic_nanos());
    }

    fn end_stage(&mut self, now: u64) {
        if let Some(spent) = self.spent.get_mut(self.current as usize) {
            // At least one, so that a stage that was reached differs from one that was not.
            *spent = spent.saturating_add(now.saturating_sub(self.since).max(1));
        }
        self.since = now;
    }

    /// Awaits a future and adds the time to its kind of wait.
    pub(super) async fn wait<T>(&mut self, wait: Wait, clock: &dyn Clock, future: impl Future<Output = T>) -> T {
        let begun = clock.monotonic_nanos();
        let output = future.await;
        if let Some(waited) = self.waited.get_mut(wait as usize) {
            *waited = waited.saturating_add(clock.monotonic_nanos().saturating_sub(begun).max(1));
        }
        output
    }

    /// From the beginning to the end of the last stage.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.since.saturating_sub(self.begun))
    }

    /// The stages that were reached, in the order of the pipeline.
    pub fn stages(&self) -> impl Iterator<Item = StageTime> {
        let times = Stage::ALL.into_iter().zip(self.entered).zip(self.spent);
        times.filter(|(_, spent)| *spent > 0).map(|((stage, entered), spent)| StageTime {
            stage,
            entered: Duration::from_nanos(entered),
            spent: Duration::from_nanos(spent),
        })
    }

    pub fn waits(&self) -> impl Iterator<Item = (Wait, Duration)> {
        let waits = Wait::ALL.into_iter().zip(self.waited).filter(|(_, waited)| *waited > 0);
        waits.map(|(wait, waited)| (wait, Duration::from_nanos(waited)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use toolgate_model::time::Timestamp;

    use super::*;

    /// A clock that a test sets.
    #[derive(Default)]
    struct SetClock(AtomicU64);

    impl SetClock {
        fn at(&self, nanos: u64) -> &Self {
            self.0.store(nanos, Ordering::Relaxed);
            self
        }
    }

    impl Clock for SetClock {
        fn now(&self) -> Timestamp {
            Timestamp::EPOCH
        }

        fn monotonic_nanos(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn spent(times: &StageTimes) -> Vec<(Stage, u128, u128)> {
        times.stages().map(|time| (time.stage, time.entered.as_nanos(), time.spent.as_nanos())).collect()
    }

    #[test]
    fn the_stages_of_a_call_add_up_to_its_total() {
        let clock = SetClock::default();
        let mut times = StageTimes::start(clock.at(100));
        times.enter(Stage::Resolve, clock.at(110));
        times.enter(Stage::Guard, clock.at(130));
        times.finish(clock.at(170));
        assert_eq!(spent(&times), [(Stage::Identify, 0, 10), (Stage::Resolve, 10, 20), (Stage::Guard, 30, 40)]);
        assert_eq!(times.total(), Duration::from_nanos(70));
    }

    #[test]
    fn a_stage_that_runs_again_counts_from_its_first_start_with_all_its_time() {
        let clock = SetClock::default();
        let mut times = StageTimes::start(clock.at(0));
        times.enter(Stage::Resolve, clock.at(1));
        times.enter(Stage::Approve, clock.at(3));
        times.enter(Stage::Resolve, clock.at(1_000));
        times.enter(Stage::Admit, clock.at(1_004));
        times.finish(clock.at(1_005));
        let expected =
            [(Stage::Identify, 0, 1), (Stage::Resolve, 1, 6), (Stage::Approve, 3, 997), (Stage::Admit, 1_004, 1)];
        assert_eq!(spent(&times), expected);
    }

    #[tokio::test]
    async fn a_wait_is_part_of_its_stage_and_counted_by_itself() {
        let clock = SetClock::default();
        let mut times = StageTimes::start(clock.at(0));
        times.enter(Stage::Approve, clock.at(5));
        for end in [50, 90] {
            times.wait(Wait::Approval, &clock, async { clock.at(end) }).await;
        }
        times.finish(clock.at(100));
        assert_eq!(times.waits().collect::<Vec<_>>(), [(Wait::Approval, Duration::from_nanos(85))]);
        assert_eq!(spent(&times), [(Stage::Identify, 0, 5), (Stage::Approve, 5, 95)]);
    }
}
