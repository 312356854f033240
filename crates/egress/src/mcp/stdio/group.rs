//! A process and all that it started, as one process group that is killed as a whole.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::Child;

/// A started process. Dropping it kills its group.
///
/// INVARIANT: the child is not waited for before the group was killed, so that its number names no other process.
pub(super) struct Group {
    leader: Option<Pid>,
    child: Child,
}

impl Group {
    pub(super) fn of(child: Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { leader, child }
    }

    /// Kills what is left, and waits for the process itself.
    pub(super) async fn end(mut self) {
        self.kill();
        // A status says nothing that the end of its output has not said.
        let _ = self.child.wait().await;
        self.leader = None;
    }

    fn kill(&self) {
        if let Some(leader) = self.leader {
            // The leader first: a dead one cannot found the group after the group was sought. Either may be gone.
            let _ = kill_process(leader, Signal::KILL);
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
