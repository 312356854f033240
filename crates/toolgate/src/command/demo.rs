//! Placeholder.
use clap::Args;
use super::Failure;
/// See what the gate does
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate demo")]
pub(crate) struct Demo {}
impl Demo {
    pub(crate) async fn run(self) -> Result<(), Failure> { Ok(()) }
}
