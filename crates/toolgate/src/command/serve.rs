//! `toolgate serve`: runs the gate.

use std::time::Duration;

use toolgate_cli::environment::Environment;
use toolgate_cli::{Failure, Serve, ServeFlags};
use toolgate_server::WorkerRuntimes;

use crate::configuration::{Flags, Loaded, keys};
use crate::{composition, logging};

/// The timeout for blocked threads at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs until the gate is stopped.
pub(super) fn serve(command: Serve) -> Result<(), Failure> {
    let Loaded { mut configuration, warnings, .. } = load(command.flags)?;
    configuration.accept_lost_master_key = command.accept_lost_master_key;
    configuration.accept_ledger_rollback = command.accept_ledger_rollback;
    logging::start(configuration.log_format, configuration.log_level.clone());
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let failed = |error| Failure::io("could not start the async runtime", error);
    // For background tasks; connections have worker runtimes.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let workers = WorkerRuntimes::start(SHUTDOWN_TIMEOUT).map_err(failed)?;
    let outcome = runtime.block_on(composition::run(configuration, &workers));
    // The drain gave up on what is left: it must not delay the end.
    workers.end();
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    Ok(outcome?)
}

/// Loads the configuration that `serve`, `recover` and `config check` use.
pub(super) fn load(flags: ServeFlags) -> Result<Loaded, Failure> {
    let values = [(&keys::DATA, flags.data), (&keys::LISTEN, flags.listen), (&keys::DATABASE_URL, flags.database)];
    let values = values.into_iter().filter_map(|(key, value)| Some((key.path, value?))).collect();
    Ok(Loaded::load(&Flags { values, file: flags.config }, Environment::of_process())?)
}
