//! The arguments of `toolgate config`.

use clap::{Args, Subcommand};

use super::serve::ServeFlags;

/// Check the configuration, or print an example
#[derive(Args)]
pub struct Config {
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub action: ConfigAction,
}

#[derive(Subcommand)]
pub enum ConfigAction {
    /// Validate the configuration, and show each value and its origin
    #[command(after_help = "Example:\n  toolgate config check --config /etc/toolgate/toolgate.toml")]
    Check(Box<ServeFlags>),
    /// Print a configuration file with all keys, commented
    #[command(after_help = "Example:\n  toolgate config example > ~/.config/toolgate/toolgate.toml")]
    Example,
}
