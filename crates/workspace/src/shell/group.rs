//! A running command and its descendants: one process group that is killed as a whole.

use std::io;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// A started command.
///
/// INVARIANT: while `leader` is `Some`, the child has not been reaped, so its process id is not reused.
#[derive(Debug)]
pub struct Group {
    leader: Option<Pid>,
    child: Child,
    exit: JoinHandle<()>,
}

impl Group {
    /// Starts the command, which is or makes itself the leader of a new group.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let child = command.kill_on_drop(true).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let exit = tokio::task::spawn_blocking(move || wait_without_reaping(leader));
        Ok(Self { leader, child, exit })
    }

    /// Waits until the command exits; its children may still be running.
    pub async fn exited(&mut self) {
        // If the waiting thread failed, the group is killed and reaped all the same.
        let _waited = (&mut self.exit).await;
    }

    /// Kills the remaining processes and returns the exit status of the command.
    pub async fn end(&mut self) -> io::Result<ExitStatus> {
        self.kill();
        let status = self.child.wait().await;
        self.leader = None;
        status
    }

    fn kill(&self) {
        if let Some(leader) = self.leader {
            // The leader first: once dead, it cannot create the group after the group was killed. Either may be gone
            // already.
            let _gone = kill_process(leader, Signal::KILL);
            let _empty = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Leaves the zombie, so that the group can still be killed by the leader's process id.
fn wait_without_reaping(leader: Option<Pid>) {
    let Some(leader) = leader else { return };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(leader), options).is_err_and(|error| error == rustix::io::Errno::INTR) {}
}
