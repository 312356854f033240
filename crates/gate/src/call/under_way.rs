//! The calls that are under way, so that the program does not end in the middle of one.

use tokio::sync::watch;

/// How many calls are between admission and settlement.
pub(crate) struct UnderWay(watch::Sender<u64>);

/// One of them; over when dropped.
pub(crate) struct Guard(watch::Sender<u64>);

impl Default for UnderWay {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl UnderWay {
    /// One more.
    pub(crate) fn enter(&self) -> Guard {
        self.0.send_modify(|count| *count += 1);
        Guard(self.0.clone())
    }

    /// Waits until there is none.
    pub(crate) async fn none(&self) {
        // The sender is here: it cannot have gone away.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
