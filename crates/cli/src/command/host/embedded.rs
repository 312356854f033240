//! The gate that `toolgate host` uses if it is given none. The binary starts it, in this process.

use std::path::PathBuf;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use toolgate_model::approval::Mode;
use toolgate_model::secret::Secret;

/// What the arguments of `toolgate host` say about its own gate.
pub struct EmbeddedGateOptions {
    /// The directory that the workspace tools are limited to.
    pub root: PathBuf,
    /// The data directory; without one, the configured one.
    pub data: Option<String>,
    /// The configuration file; without one, the default one.
    pub config: Option<PathBuf>,
    pub mode: Option<Mode>,
    pub allow_mode_changes: bool,
}

/// A running gate in this process.
pub struct EmbeddedGate {
    pub url: String,
    /// The key of a user who may call tools for the agent and decide its approvals.
    pub key: Secret,
    /// The agent that tools are called for.
    pub agent: String,
    /// The gate shuts down when this is dropped.
    pub running: oneshot::Sender<()>,
    pub serving: JoinHandle<()>,
}

impl EmbeddedGate {
    /// Shuts it down: calls in flight are settled.
    pub(super) async fn stop(self) {
        drop(self.running);
        let _ = self.serving.await;
    }
}
