//! Inspecting mounted MCP servers: when their time has come, and when a connection has noticed a change.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use toolgate_gate::maintenance::mounts::ChangedMounts;
use toolgate_server::App;
use toolgate_server::shutdown::Phase;

use super::{Ticks, Watched};

/// How often it is looked whether a mount is due.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How many mounts are inspected in one round. An inspection has a deadline, and the others come next.
const ROUND: usize = 16;

/// When mounted servers are inspected.
#[derive(Clone)]
pub struct MountChecks {
    /// Those that have announced a change.
    pub changed: Arc<ChangedMounts>,
    /// How often each one is inspected otherwise.
    pub every: Duration,
}

impl MountChecks {
    pub(super) async fn run(self, app: Arc<App>, stopped: watch::Receiver<bool>) {
        let mut watched = Watched::new(&app, "inspecting mounted servers");
        let mut stopping = stopped.clone();
        let mut ticks = Ticks::new(&app, "mounts", POLL_INTERVAL, stopped);
        loop {
            let goes_on = tokio::select! {
                goes_on = ticks.next() => goes_on,
                () = self.changed.changed_any() => true,
            };
            if !goes_on {
                return;
            }
            if app.shutdown.phase() >= Phase::Draining {
                continue;
            }
            let mut mounts = self.changed.take();
            match app.gate.mounts.due(self.every, ROUND).await {
                Ok(due) => mounts.extend(due),
                Err(refusal) => watched.note(Err(refusal)),
            }
            for (tenant, name) in mounts {
                // May be cut off anywhere: what was not recorded is seen again.
                let checked = tokio::select! {
                    checked = app.gate.mounts.check_unasked(&tenant, &name) => checked,
                    _ = stopping.changed() => return,
                };
                watched.note(checked);
            }
        }
    }
}
