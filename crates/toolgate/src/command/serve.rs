//! `toolgate serve`: runs the gate.

use std::time::Duration;

use toolgate_cli::environment::Environment;
use toolgate_cli::{Failure, Serve, ServeFlags};
use toolgate_server::WorkerRuntimes;

use crate::configuration::{Flags, Loaded, keys};
use crate::{composition, logging};

/// How long threads that wait for the disk or for another process may still take when all else has ended.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves until it is asked to end.
pub(super) fn serve(command: Serve) -> Result<(), Failure> {
    let Loaded { mut configuration, warnings, .. } = load(command.flags)?;
    configuration.accept_lost_master_key = command.accept_lost_master_key;
    configuration.accept_ledger_rollback = command.accept_ledger_rollback;
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

/// Loads the configuration that `serve`, `recover` and `config check` use.
pub(super) fn load(flags: ServeFlags) -> Result<Loaded, Failure> {
    let values = [(&keys::DATA, flags.data), (&keys::LISTEN, flags.listen), (&keys::DATABASE_URL, flags.database)];
    let values = values.into_iter().filter_map(|(key, value)| Some((key.path, value?))).collect();
    Ok(Loaded::load(&Flags { values, file: flags.config }, Environment::of_process())?)
}
