//! Commands that run a gate, or open its ledger, in this process. Their arguments are declared beside the other commands;
//! the binary, which composes gates, executes them.

use super::Failure;
use super::config::Config;
use super::demo::Demo;
use super::host::{EmbeddedGate, EmbeddedGateOptions};
use super::recover::Recover;
use super::serve::Serve;
use crate::output::Report;

/// Executes the commands that need a gate in this process.
pub trait LocalCommands {
    fn serve(&self, command: Serve) -> Result<(), Failure>;

    fn config(&self, command: Config) -> Result<Report, Failure>;

    fn demo(&self, command: Demo) -> impl Future<Output = Result<(), Failure>>;

    fn recover(&self, command: Recover) -> Result<Report, Failure>;

    /// Starts the gate that `toolgate host` and `toolgate mcp` use if no URL is given.
    fn start_gate(&self, options: EmbeddedGateOptions) -> impl Future<Output = Result<EmbeddedGate, Failure>>;
}
