//! The end of serving, for answers that would otherwise go on for as long as anybody listens.

use std::time::Duration;

use tokio::sync::watch;

/// Whether the program was asked to end.
#[derive(Debug)]
pub struct Ending(watch::Sender<bool>);

impl Default for Ending {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Ending {
    /// The program is asked to end.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Waits this long, or until the program is asked to end; true in the latter case.
    pub async fn begins_within(&self, wait: Duration) -> bool {
        let mut receiver = self.0.subscribe();
        tokio::time::timeout(wait, receiver.wait_for(|ending| *ending)).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_waits_is_told_of_the_end_and_whoever_comes_later_too() {
        let ending = Ending::default();
        assert!(!ending.begins_within(Duration::ZERO).await);
        let (told, ()) = tokio::join!(ending.begins_within(Duration::from_secs(3600)), async { ending.begin() });
        assert!(told);
        assert!(ending.begins_within(Duration::from_secs(3600)).await);
    }
}
