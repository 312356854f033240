//! The arguments of `toolgate serve`.

use std::path::PathBuf;

use clap::Args;

/// Run the gate
///
/// With nothing said it keeps everything under the user's data directory, its keys under the user's configuration
/// directory, and listens on 127.0.0.1:7300. The first start makes the administrator's token and shows it once.
#[derive(Args, Default)]
#[command(after_help = "Example:\n  toolgate serve --data /var/lib/toolgate --listen 127.0.0.1:7300")]
pub struct Serve {
    #[command(flatten)]
    pub flags: ServeFlags,
    /// Make a new master key although credentials are sealed under a lost one; they must be entered again
    #[arg(long)]
    pub accept_lost_master_key: bool,
    /// Serve a ledger that is older than the newest signed head, or another one; what was revoked or used since works again
    #[arg(long)]
    pub accept_ledger_rollback: bool,
}

/// What `serve` and `config check` take alike.
#[derive(Args, Default)]
pub struct ServeFlags {
    /// Directory of the embedded ledger (TOOLGATE_DATA)
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    /// Address and port to listen on (TOOLGATE_LISTEN)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// PostgreSQL instead of the embedded ledger; better by variable if it holds a password (TOOLGATE_DATABASE_URL)
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
    /// Configuration file (TOOLGATE_CONFIG)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
