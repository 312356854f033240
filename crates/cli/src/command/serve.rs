//! The arguments of `toolgate serve`.

use std::path::PathBuf;

use clap::Args;

/// Run the gate
///
/// By default the ledger is in the user's data directory, keys are in the user's configuration directory, and the gate
/// listens on 127.0.0.1:7300. The first start creates a token for the administrator and shows it once.
#[derive(Args, Default)]
#[command(after_help = "Example:\n  toolgate serve --data /var/lib/toolgate --listen 127.0.0.1:7300")]
pub struct Serve {
    #[command(flatten)]
    pub flags: ServeFlags,
    /// Create a new master key although credentials are sealed under a lost one; their secrets must be entered again
    #[arg(long)]
    pub accept_lost_master_key: bool,
    /// Serve a ledger that is older than the newest signed head, or another one; later revocations and uses are lost
    #[arg(long)]
    pub accept_ledger_rollback: bool,
}

/// The options of `serve`, `recover` and `config check`.
#[derive(Args, Default)]
pub struct ServeFlags {
    /// Directory of the embedded ledger (TOOLGATE_DATA)
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    /// Address and port to listen on (TOOLGATE_LISTEN)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// PostgreSQL instead of the embedded ledger; use the variable if it contains a password (TOOLGATE_DATABASE_URL)
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
    /// Configuration file (TOOLGATE_CONFIG)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
