//! The shutdown, in phases: first `/readyz` fails while the gate keeps serving, so that load balancers switch to other
//! replicas; then it accepts nothing new and ends what would continue as long as a client listens.

use std::time::Duration;

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Serving,
    /// Everything is served, connections are closed after their response, and `/readyz` fails.
    LameDuck,
    /// No connection is accepted; requests in flight end.
    Draining,
}

#[derive(Debug)]
pub struct Shutdown(watch::Sender<Phase>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }
}

impl Shutdown {
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Enters a phase; it never goes back.
    pub fn enter(&self, phase: Phase) {
        self.0.send_if_modified(|now| {
            let later = phase > *now;
            *now = phase.max(*now);
            later
        });
    }

    /// Returns the next phase once it is entered; never after the last one.
    pub fn after(&self, phase: Phase) -> impl Future<Output = Phase> + Send + use<> {
        let mut phases = self.0.subscribe();
        async move {
            match phases.wait_for(|now| *now > phase).await.map(|now| *now) {
                Ok(now) => now,
                // The sender was dropped with the program.
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// Waits this long, or until the gate drains; true in the latter case.
    pub async fn drains_within(&self, wait: Duration) -> bool {
        let mut phases = self.0.subscribe();
        tokio::time::timeout(wait, phases.wait_for(|now| *now == Phase::Draining)).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiters_hear_of_draining_and_later_ones_too() {
        let shutdown = Shutdown::default();
        assert!(!shutdown.drains_within(Duration::ZERO).await);
        shutdown.enter(Phase::LameDuck);
        assert!(!shutdown.drains_within(Duration::ZERO).await);
        let drain = async { shutdown.enter(Phase::Draining) };
        let (drains, ()) = tokio::join!(shutdown.drains_within(Duration::from_secs(3600)), drain);
        assert!(drains);
        assert!(shutdown.drains_within(Duration::from_secs(3600)).await);
    }

    #[tokio::test]
    async fn phases_come_one_after_the_other_and_never_back() {
        let shutdown = Shutdown::default();
        shutdown.enter(Phase::LameDuck);
        assert_eq!(shutdown.after(Phase::Serving).await, Phase::LameDuck);
        shutdown.enter(Phase::Draining);
        shutdown.enter(Phase::LameDuck);
        assert_eq!(shutdown.phase(), Phase::Draining);
        assert_eq!(shutdown.after(Phase::LameDuck).await, Phase::Draining);
    }
}
