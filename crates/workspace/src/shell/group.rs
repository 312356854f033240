//! A running command and all that it started, as one process group that is killed as a whole.

use std::io;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// A started command.
///
/// INVARIANT: while `leader` is some, the child has not been reaped, so that its number names no other process.
#[derive(Debug)]
pub struct Group {
    leader: Option<Pid>,
    child: Child,
    exit: JoinHandle<()>,
}

impl Group {
    /// Starts the command, which leads a group of its own or makes itself the leader of one.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let child = command.kill_on_drop(true).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let exit = tokio::task::spawn_blocking(move || wait_without_reaping(leader));
        Ok(Self { leader, child, exit })
    }

    /// Waits until the command has exited; what it started may still run.
    pub async fn exited(&mut self) {
        // A waiting thread that failed tells nothing; the group is killed and reaped either way.
        let _waited = (&mut self.exit).await;
    }

    /// Kills what is left and tells how the command ended.
    pub async fn end(&mut self) -> io::Result<ExitStatus> {
        self.kill();
        let status = self.child.wait().await;
        self.leader = None;
        status
    }

    fn kill(&self) {
        if let Some(leader) = self.leader {
            // The leader first: a dead one cannot found the group after the group was sought. Either may be gone.
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

/// Leaves the zombie in place, so that the group can still be killed by the leader's number.
fn wait_without_reaping(leader: Option<Pid>) {
    let Some(leader) = leader else { return };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(leader), options).is_err_and(|error| error == rustix::io::Errno::INTR) {}
}
