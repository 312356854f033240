//! Mounted MCP servers without a caller: mounting those of the configuration, and inspecting all of them when their time has
//! come and when a connection has noticed a change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use toolgate_gate::Refusal;
use toolgate_gate::authority::mounts::{Declaration, DeclaredMount};
use toolgate_gate::maintenance::mount_sessions::RecordedSessions;
use toolgate_gate::maintenance::mounts::ChangedMounts;
use toolgate_gate::refusal::{Code, Kind};
use toolgate_model::credential::ServiceName;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;
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
    /// Those of the configuration.
    pub declared: Arc<Vec<DeclaredMount>>,
    /// The state that servers keep for principals.
    pub sessions: Arc<RecordedSessions>,
}

/// Mounts of the configuration that are not mounted yet.
struct Pending {
    mounts: Vec<DeclaredMount>,
    /// Whether those that are gone from the configuration are still to be removed.
    retracts: bool,
    next: Timestamp,
    pause: Duration,
}

impl Pending {
    fn new(declared: &[DeclaredMount]) -> Self {
        Self { mounts: declared.to_vec(), retracts: true, next: Timestamp::EPOCH, pause: POLL_INTERVAL }
    }

    /// Tries all of them once. A server that cannot be reached is tried again, ever less often; what cannot be mounted for
    /// another reason is said and left.
    async fn attempt(&mut self, app: &App, declared: &[DeclaredMount], longest: Duration) {
        if self.retracts {
            match retract(app, declared).await {
                Ok(()) => self.retracts = false,
                Err(refusal) => tracing::error!(%refusal, "mounts that are gone from mounts.file were not removed"),
            }
        }
        let mut remaining = Vec::new();
        for mount in std::mem::take(&mut self.mounts) {
            let (tenant, name) = (&mount.tenant, &mount.name);
            match app.gate.mounts.declare(&mount).await {
                Ok(Declaration::Unchanged) => {}
                Ok(Declaration::Mounted) => {
                    tracing::info!(%tenant, %name, "mounted as mounts.file says; accept it with `toolgate mount review`");
                }
                Ok(Declaration::Replaced) => {
                    tracing::warn!(%tenant, %name, "mounted anew, because its entry in mounts.file has changed; accept it \
                        again with `toolgate mount review`");
                }
                Ok(Declaration::ByAdministrator) => {
                    tracing::info!(%tenant, %name, "an administrator has mounted this server before; its entry in \
                        mounts.file changes nothing");
                }
                // Another gate with the same configuration was faster.
                Err(refusal) if refusal.code() == Code::AlreadyExists && is_mounted(app, &mount).await => {}
                Err(refusal) if is_passing(&refusal) => {
                    tracing::warn!(%tenant, %name, %refusal, "not mounted yet; tried again");
                    remaining.push(mount);
                }
                Err(refusal) => tracing::error!(%tenant, %name, %refusal, "not mounted; correct mounts.file"),
            }
        }
        self.mounts = remaining;
        self.next = app.gate.clock.now().plus(self.pause);
        self.pause = (self.pause * 2).min(longest);
    }

    fn is_due(&self, now: Timestamp) -> bool {
        (self.retracts || !self.mounts.is_empty()) && now >= self.next
    }
}

/// Whether the declaration is followed by now.
async fn is_mounted(app: &App, mount: &DeclaredMount) -> bool {
    matches!(app.gate.mounts.declare(mount).await, Ok(Declaration::Unchanged))
}

/// Whether it may be another time.
fn is_passing(refusal: &Refusal) -> bool {
    refusal.code() == Code::MountFailed || matches!(refusal.code().kind(), Kind::Unavailable | Kind::Internal)
}

/// Removes the mounts of every tenant that are gone from the configuration.
async fn retract(app: &App, declared: &[DeclaredMount]) -> Result<(), Refusal> {
    let mut of_tenant: BTreeMap<TenantId, BTreeSet<ServiceName>> = BTreeMap::new();
    for mount in declared {
        of_tenant.entry(mount.tenant.clone()).or_default().insert(mount.name.clone());
    }
    for tenant in app.gate.mounts.declaring_tenants().await? {
        let kept = of_tenant.remove(&tenant).unwrap_or_default();
        for name in app.gate.mounts.retract(&tenant, &kept).await? {
            tracing::warn!(%tenant, %name, "the mount was removed: mounts.file does not have it any more");
        }
    }
    Ok(())
}

impl MountChecks {
    pub(super) async fn run(self, app: Arc<App>, stopped: watch::Receiver<bool>) {
        let mut watched = Watched::new(&app, "inspecting mounted servers");
        let mut stopping = stopped.clone();
        let mut ticks = Ticks::new(&app, "mounts", POLL_INTERVAL, stopped);
        let mut pending = Pending::new(&self.declared);
        loop {
            let goes_on = tokio::select! {
                goes_on = ticks.next() => goes_on,
                () = self.changed.changed_any() => true,
            };
            if !goes_on {
                return;
            }
            app.gate.mounts.sweep_connections();
            watched.note(self.sessions.close_ended().await);
            if app.shutdown.phase() >= Phase::Draining {
                continue;
            }
            if pending.is_due(app.gate.clock.now()) {
                // May be cut off anywhere: each mount is one transaction, and the next start goes on.
                tokio::select! {
                    () = pending.attempt(&app, &self.declared, self.every) => {}
                    _ = stopping.changed() => return,
                }
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
