//! The mounted MCP servers of the configuration: those that are processes of this machine, ready to be started in
//! confinement, and what is to be mounted.

use std::ffi::OsString;
use std::sync::Arc;

use serde_json::json;
use toolgate_egress::mcp::StdioMount;
use toolgate_gate::authority::mounts::{DeclaredMount, DeclaredSecret};
use toolgate_gate::ports::mount::MountWatch;
use toolgate_gate::{Gate, Refusal};
use toolgate_model::canonical::to_canonical;
use toolgate_model::credential::AuthType;
use toolgate_model::id::CredentialId;
use toolgate_model::merkle::sha256;
use toolgate_model::mount::MountAddress;
use toolgate_model::principal::TenantId;
use toolgate_model::secret::Material;
use toolgate_workspace::{Launcher, Limits};

use super::{StartError, own_places};
use crate::configuration::{Configuration, EntryAccess, EntryServer, MountEntry, ProcessEntry};

/// The processes that the operator has configured. Toolgate's own files do not exist for these programs.
pub(super) fn open(configuration: &Configuration) -> Result<Vec<StdioMount>, StartError> {
    let processes = configuration.mounts.iter().filter_map(|entry| match &entry.server {
        EntryServer::Process(process) => Some(mount(entry, process, configuration)),
        EntryServer::Http(_) => None,
    });
    processes.collect()
}

/// What is mounted without an administrator. Secrets are sealed now, whether their servers can be reached or not.
pub(super) async fn declared(configuration: &Configuration, gate: &Gate) -> Result<Vec<DeclaredMount>, StartError> {
    let mut declared = Vec::new();
    for entry in &configuration.mounts {
        let Some(access) = &entry.access else { continue };
        for tenant in &entry.tenants {
            let credential = credential(gate, tenant, entry, access).await;
            let failed = |reason| StartError::Declared { name: entry.name.to_string(), reason };
            declared.push(DeclaredMount {
                tenant: tenant.clone(),
                name: entry.name.clone(),
                address: match &entry.server {
                    EntryServer::Http(url) => MountAddress::Http { url: url.clone() },
                    EntryServer::Process(_) => MountAddress::Stdio,
                },
                trusted: entry.trusted,
                hidden_characters: entry.hidden_characters,
                credential: credential.map_err(failed)?,
            });
        }
    }
    Ok(declared)
}

/// Tells the ledger what starts the processes of this gate, before any call can: a mount whose command is not the accepted one
/// is quarantined. Those with news are inspected at once.
pub(super) async fn note_commands(
    configuration: &Configuration,
    gate: &Gate,
    changed: &dyn MountWatch,
) -> Result<(), Refusal> {
    for entry in &configuration.mounts {
        let EntryServer::Process(process) = &entry.server else { continue };
        for tenant in &entry.tenants {
            if gate.mounts.note_command(tenant, &entry.name, &digest(process)).await? {
                changed.changed(tenant, &entry.name);
            }
        }
    }
    Ok(())
}

/// What makes a process another server: the program, its arguments, and where it runs.
fn digest(process: &ProcessEntry) -> String {
    let started = json!({"command": process.command, "directory": process.directory});
    format!("sha256:{}", sha256(&to_canonical(&started)).to_hex())
}

/// What a server is inspected with. For one that needs nothing there is a credential too, so that it can be granted.
async fn credential(
    gate: &Gate,
    tenant: &TenantId,
    entry: &MountEntry,
    access: &EntryAccess,
) -> Result<Option<CredentialId>, Refusal> {
    match access {
        EntryAccess::Credential(id) => {
            gate.mounts.require_credential(tenant, &entry.name, *id).await?;
            Ok(Some(*id))
        }
        EntryAccess::Secret { auth_type, metadata, material } => {
            // Each tenant seals its own.
            let material = Material::from_plaintext(&material.to_plaintext()).unwrap_or_default();
            let secret = DeclaredSecret { auth_type: *auth_type, metadata: metadata.clone(), material };
            gate.mounts.declare_secret(tenant, &entry.name, secret).await.map(Some)
        }
        EntryAccess::Open => {
            let metadata = json!({"auth": {"location": "none"}}).as_object().cloned().unwrap_or_default();
            let secret = DeclaredSecret { auth_type: AuthType::ApiKey, metadata, material: Material::new() };
            gate.mounts.declare_secret(tenant, &entry.name, secret).await?;
            Ok(None)
        }
    }
}

fn mount(entry: &MountEntry, process: &ProcessEntry, configuration: &Configuration) -> Result<StdioMount, StartError> {
    let failed = |reason| StartError::Mount { name: entry.name.to_string(), reason };
    let limits = Limits {
        bounds: process.bounds,
        network: process.network,
        sandbox: process.sandbox,
        hidden: own_places(configuration),
        ..Limits::default()
    };
    let launcher = Launcher::new(process.writable.clone(), &limits).map_err(failed)?;
    let words: Vec<OsString> = process.command.iter().map(OsString::from).collect();
    let launch = launcher.launch(&words, process.directory.as_deref()).map_err(failed)?;
    let report = launcher.report();
    if report.writes_confined {
        tracing::info!(mount = %entry.name, sandbox = report.kind, note = %report.note, "a mounted server is configured");
    } else {
        tracing::warn!(mount = %entry.name, note = %report.note, "a mounted server is configured, without a sandbox");
    }
    let temporary = launcher.temporary().display().to_string();
    let environment = [("TMPDIR".to_owned(), temporary)].into_iter().chain(process.environment.clone()).collect();
    Ok(StdioMount {
        name: entry.name.to_string(),
        digest: digest(process),
        tenants: entry.tenants.clone(),
        command: launch.words,
        leads_group: launch.leads_group,
        directory: process.directory.clone(),
        environment,
        credential: process.credential.clone(),
        stateful: process.stateful,
        max_processes: process.max_processes,
        idle: process.idle,
        keep: Some(Arc::new(launcher)),
    })
}
