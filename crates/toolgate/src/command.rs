//! The commands that run a gate, or open its ledger, in this process.

use toolgate_cli::output::Report;
use toolgate_cli::{Config, Demo, EmbeddedGate, EmbeddedGateOptions, Failure, LocalCommands, Recover, Serve};

use crate::composition::StartError;
use crate::configuration::ConfigurationError;

mod config;
mod demo;
mod embedded_gate;
mod recover;
mod serve;

/// Implements the commands that run a gate in this process.
pub struct Gates;

impl LocalCommands for Gates {
    fn serve(&self, command: Serve) -> Result<(), Failure> {
        serve::serve(command)
    }

    fn config(&self, command: Config) -> Result<Report, Failure> {
        config::config(command)
    }

    async fn demo(&self, command: Demo) -> Result<(), Failure> {
        demo::demo(command).await
    }

    fn recover(&self, command: Recover) -> Result<Report, Failure> {
        recover::recover(command)
    }

    async fn start_gate(&self, options: EmbeddedGateOptions) -> Result<EmbeddedGate, Failure> {
        embedded_gate::start(options).await
    }
}

impl From<ConfigurationError> for Failure {
    fn from(error: ConfigurationError) -> Self {
        Self::Said(error.to_string())
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self::Said(error.to_string())
    }
}
