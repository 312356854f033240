//! The mounted MCP servers that are processes of this machine, ready to be started in confinement.

use std::ffi::OsString;
use std::sync::Arc;

use toolgate_egress::mcp::StdioMount;
use toolgate_workspace::{Launcher, Limits};

use super::{StartError, own_places};
use crate::configuration::{Configuration, MountEntry};

/// What the operator has configured. Toolgate's own files do not exist for these programs.
pub(super) fn open(configuration: &Configuration) -> Result<Vec<StdioMount>, StartError> {
    configuration.mounts.iter().map(|entry| mount(entry, configuration)).collect()
}

fn mount(entry: &MountEntry, configuration: &Configuration) -> Result<StdioMount, StartError> {
    let failed = |reason| StartError::Mount { name: entry.name.clone(), reason };
    let limits = Limits {
        bounds: entry.bounds,
        network: entry.network,
        sandbox: entry.sandbox,
        hidden: own_places(configuration),
        ..Limits::default()
    };
    let launcher = Launcher::new(entry.writable.clone(), &limits).map_err(failed)?;
    let words: Vec<OsString> = entry.command.iter().map(OsString::from).collect();
    let launch = launcher.launch(&words, entry.directory.as_deref()).map_err(failed)?;
    let report = launcher.report();
    if report.writes_confined {
        tracing::info!(mount = %entry.name, sandbox = report.kind, note = %report.note, "a mounted server is configured");
    } else {
        tracing::warn!(mount = %entry.name, note = %report.note, "a mounted server is configured, without a sandbox");
    }
    let temporary = launcher.temporary().display().to_string();
    let environment = [("TMPDIR".to_owned(), temporary)].into_iter().chain(entry.environment.clone()).collect();
    Ok(StdioMount {
        name: entry.name.clone(),
        tenants: entry.tenants.clone(),
        command: launch.words,
        leads_group: launch.leads_group,
        directory: entry.directory.clone(),
        environment,
        credential: entry.credential.clone(),
        stateful: entry.stateful,
        max_processes: entry.max_processes,
        idle: entry.idle,
        keep: Some(Arc::new(launcher)),
    })
}
