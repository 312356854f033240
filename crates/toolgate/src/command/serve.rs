//! `toolgate serve`: runs the gate.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use toolgate_server::WorkerRuntimes;

use super::Failure;
use crate::configuration::{Environment, Flags, Loaded, keys};
use crate::{composition, logging};

/// How long threads that wait for the disk or for another process may still take when all else has ended.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Run the gate
///
/// With nothing said it keeps everything under the user's data directory, its keys under the user's configuration
/// directory, and listens on 127.0.0.1:7300. The first start makes the administrator's token and shows it once.
#[derive(Args, Default)]
#[command(after_help = "Example:\n  toolgate serve --data /var/lib/toolgate --listen 127.0.0.1:7300")]
pub(crate) struct Serve {
    #[command(flatten)]
    flags: ServeFlags,
    /// Make a new master key although credentials are sealed under a lost one; they must be entered again
    #[arg(long)]
    accept_lost_master_key: bool,
    /// Serve a ledger that is older than the newest signed head, or another one; what was revoked or used since works again
    #[arg(long)]
    accept_ledger_rollback: bool,
}

/// What `serve` and `config check` take alike.
#[derive(Args, Default)]
pub(crate) struct ServeFlags {
    /// Directory of the embedded ledger (TOOLGATE_DATA)
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// Address and port to listen on (TOOLGATE_LISTEN)
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// PostgreSQL instead of the embedded ledger; better by variable if it holds a password (TOOLGATE_DATABASE_URL)
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Configuration file (TOOLGATE_CONFIG)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ServeFlags {
    /// Gathers the configuration of this process.
    pub(crate) fn load(self) -> Result<Loaded, Failure> {
        let values = [(&keys::DATA, self.data), (&keys::LISTEN, self.listen), (&keys::DATABASE_URL, self.database)];
        let values = values.into_iter().filter_map(|(key, value)| Some((key.path, value?))).collect();
        Ok(Loaded::load(&Flags { values, file: self.config }, Environment::of_process())?)
    }
}

impl Serve {
    /// Serves until it is asked to end.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Loaded { mut configuration, warnings, .. } = self.flags.load()?;
        configuration.accept_lost_master_key = self.accept_lost_master_key;
        configuration.accept_ledger_rollback = self.accept_ledger_rollback;
        logging::start(configuration.log_format, configuration.log_level.clone());
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let failed = |error| Failure::io("the runtime cannot be started", error);
        // For background tasks; calls have their worker runtimes.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let workers = WorkerRuntimes::start(SHUTDOWN_TIMEOUT).map_err(failed)?;
        let outcome = runtime.block_on(composition::run(configuration, &workers));
        // Whatever is left now was given up on by the drain: it must not hold the end up.
        workers.end();
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        Ok(outcome?)
    }
}
