//! The arguments of `toolgate config`.

use clap::{Args, Subcommand};

use super::serve::ServeFlags;

/// Check the configuration, or print an example of it
#[derive(Args)]
pub struct Config {
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub action: ConfigAction,
}

#[derive(Subcommand)]
pub enum ConfigAction {
    /// Validate the configuration and show what holds, and where it comes from
    #[command(after_help = "Example:\n  toolgate config check --config /etc/toolgate/toolgate.toml")]
    Check(Box<ServeFlags>),
    /// Print the configuration file with every key, commented
    #[command(after_help = "Example:\n  toolgate config example > ~/.config/toolgate/toolgate.toml")]
    Example,
}
