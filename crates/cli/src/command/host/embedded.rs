//! The gate that `toolgate host` and `toolgate mcp` use if they are given none. The binary starts it, in this process.

use std::path::PathBuf;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use toolgate_model::approval::Mode;
use toolgate_model::secret::Secret;

/// What the arguments of a command say about its own gate.
pub struct EmbeddedGateOptions {
    /// The directory that the workspace tools are limited to; without one, they are as configured.
    pub root: Option<PathBuf>,
    /// The data directory; without one, the configured one.
    pub data: Option<String>,
    /// The configuration file; without one, the default one.
    pub config: Option<PathBuf>,
    pub mode: Option<Mode>,
    pub allow_mode_changes: bool,
    pub principal: EmbeddedPrincipal,
}

/// The principal that the command gets a key of.
pub enum EmbeddedPrincipal {
    /// The user of `toolgate host`, who calls tools for its agent and decides its approvals.
    Host,
    /// The agent of this id, created if it does not exist, which decides nothing.
    Agent(String),
}

/// A running gate in this process.
pub struct EmbeddedGate {
    pub url: String,
    /// The key of the principal.
    pub key: Secret,
    /// The agent that tools are called for.
    pub agent: String,
    /// The gate shuts down when this is dropped.
    pub running: oneshot::Sender<()>,
    pub serving: JoinHandle<()>,
}

impl EmbeddedGate {
    /// Shuts it down: calls in flight are settled.
    pub(crate) async fn stop(self) {
        drop(self.running);
        let _ = self.serving.await;
    }
}
