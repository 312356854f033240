//! Mounts the servers that a client has in its settings behind the gate. Keys in the settings become credentials in the vault.
//! A server that is a process cannot be mounted over HTTP, because the command runs with the gate's account: it becomes an entry of
//! the operator's `mounts.file`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use toolgate_api::credentials::{
    CreateCredentialInVault, CredentialInVaultRequest, Metadata, Reason, RevokeCredential,
};
use toolgate_api::mounts::{CreateMount, ListMounts, MountRequest};
use toolgate_model::credential::AuthType;
use toolgate_model::id::CredentialId;
use toolgate_model::secret::{Material, Secret};

use self::found::{Found, HttpServer, ProcessServer, Server};
use super::change::Change;
use super::servers::ServersFile;
use super::toml_text;
use crate::client::Client;
use crate::command::Failure;
use crate::command::material::body_with;
use crate::command::mount::mounts_vault;
use crate::command::values::{typed, typed_option};
use crate::output::clean;

mod found;

/// What is done with the servers of a client.
pub(super) struct Import {
    servers: Vec<Found>,
    /// The names of mounts that exist with the same URL.
    mounted: BTreeSet<String>,
    /// Whether processes are written to a file of mounts.
    has_mounts_file: bool,
}

impl Import {
    /// Reads the settings, without the server of Toolgate. Nothing is changed.
    pub(super) async fn plan(
        client: &Client,
        mut servers: Map<String, Value>,
        own: &str,
        mounts: Option<&mut Change>,
    ) -> Result<Self, Failure> {
        servers.remove(own);
        let found = found::read(&servers, |name| std::env::var(name).ok());
        let existing = client.to::<ListMounts>().send().await?.mounts;
        let mut mounted = BTreeSet::new();
        let mut planned = Vec::new();
        for mut server in found {
            let same_name = existing.iter().find(|mount| mount.name.as_str() == server.mount);
            if let (Server::Http(http), Some(mount)) = (&server.server, same_name) {
                let is_same = mount.url.as_deref().is_some_and(|url| same_url(url, &http.url));
                if is_same {
                    mounted.insert(server.mount.clone());
                } else {
                    let reason = format!("another mount is called {}", server.mount);
                    server.server = Server::Skipped(reason);
                }
            }
            planned.push(server);
        }
        let has_mounts_file = mounts.is_some();
        if let Some(change) = mounts {
            for (found, process) in processes(&planned) {
                add_entry(change, &found.mount, process)?;
            }
        }
        Ok(Self { servers: planned, mounted, has_mounts_file })
    }

    /// The settings without the servers that are imported.
    pub(super) fn without_imported(&self, file: ServersFile, text: &str) -> Result<String, String> {
        let mut text = text.to_owned();
        for found in self.servers.iter().filter(|found| self.is_imported(found)) {
            text = file.without(&text, &found.name).map_err(|error| error.to_string())?;
        }
        Ok(text)
    }

    fn is_imported(&self, found: &Found) -> bool {
        match found.server {
            Server::Http(_) => true,
            Server::Process(_) => self.has_mounts_file,
            Server::Skipped(_) => false,
        }
    }

    /// The text without the keys of the servers, which must not stay on a screen.
    pub(super) fn redacted(&self, text: &str) -> String {
        let secrets = self.servers.iter().filter_map(|found| match &found.server {
            Server::Http(http) => http.secret.as_ref().map(|secret| &secret.value),
            Server::Process(process) => process.secret.as_ref().map(|(_, secret)| secret),
            Server::Skipped(_) => None,
        });
        let secrets = secrets.map(Secret::expose).filter(|secret| !secret.is_empty());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "[redacted]"))
    }

    /// What [`Import::carry_out`] will do, for the user.
    pub(super) fn announcement(&self) -> Vec<String> {
        if self.servers.is_empty() {
            return vec!["There are no other servers to import.".to_owned()];
        }
        let line = |found: &Found| {
            let (name, mount) = (clean(&found.name), clean(&found.mount));
            match &found.server {
                Server::Http(http) => {
                    let key = if http.secret.is_some() { ", with its key in the vault" } else { "" };
                    let verb = if self.mounted.contains(&found.mount) { "Uses the mount" } else { "Mounts" };
                    format!("{verb} {mount} ({}){key}, instead of server {name}.", clean(&http.url))
                }
                Server::Process(process) if self.has_mounts_file => {
                    let key = if process.secret.is_some() { ", and its key to the vault" } else { "" };
                    format!("Moves server {name} to the file of mounts as {mount}{key}.")
                }
                Server::Process(_) => format!(
                    "Server {name} is a process and stays: only the operator of the gate can mount it, see below."
                ),
                Server::Skipped(reason) => format!("Server {name} stays: {}.", clean(reason)),
            }
        };
        self.servers.iter().map(line).collect()
    }

    /// The entries for the operator, if they are not written to a file.
    pub(super) fn entries(&self) -> String {
        if self.has_mounts_file {
            return String::new();
        }
        let entries: Vec<String> = processes(&self.servers)
            .map(|(found, process)| {
                let key = process.secret.as_ref().map_or("", |_| " --auth-type api_key");
                let entry = toml_text::array_entry("mounts", &process.entry(&found.mount));
                format!("{entry}# then restart the gate, and: toolgate mount add {}{key}\n", found.mount)
            })
            .collect();
        if entries.is_empty() {
            return String::new();
        }
        format!("For the file that `mounts.file` of the gate names:\n\n{}", entries.join("\n"))
    }

    /// Mounts the servers and stores their keys. Returns what was done, and the names of servers that could not be imported,
    /// which stay in the settings.
    pub(super) async fn carry_out(&self, client: &Client) -> Result<(Vec<String>, Vec<String>), Failure> {
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for found in self.servers.iter().filter(|found| self.is_imported(found)) {
            let outcome = match &found.server {
                Server::Http(_) if self.mounted.contains(&found.mount) => {
                    Ok(format!("{} was mounted before.", found.mount))
                }
                Server::Http(http) => mount(client, &found.mount, http).await,
                Server::Process(process) => store_key(client, &found.mount, process).await,
                Server::Skipped(_) => continue,
            };
            match outcome {
                Ok(text) => done.push(text),
                Err(failure) => {
                    done.push(format!("{} could not be imported and stays: {failure}", clean(&found.name)));
                    failed.push(found.name.clone());
                }
            }
        }
        Ok((done, failed))
    }
}

fn processes(servers: &[Found]) -> impl Iterator<Item = (&Found, &ProcessServer)> {
    servers.iter().filter_map(|found| match &found.server {
        Server::Process(process) => Some((found, process)),
        _ => None,
    })
}

fn add_entry(change: &mut Change, mount: &str, process: &ProcessServer) -> Result<(), Failure> {
    let unchanged = |reason: &str| Failure::Said(format!("{} was not changed: {reason}", change.file.display()));
    let parsed = toml::from_str::<Value>(change.text()).map_err(|_| unchanged("it is not TOML; correct it"))?;
    let mounts = parsed.get("mounts").and_then(Value::as_array);
    let is_there = |entry: &Value| entry.get("name").and_then(Value::as_str) == Some(mount);
    if mounts.is_some_and(|mounts| mounts.iter().any(is_there)) {
        return Err(unchanged(&format!("it has a mount {mount} already; rename one of them")));
    }
    let mut text = change.text().to_owned();
    if !text.is_empty() {
        text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
    text.push_str(&toml_text::array_entry("mounts", &process.entry(mount)));
    toml::from_str::<Value>(&text).map_err(|_| unchanged("an entry cannot be appended to it; add it by hand"))?;
    change.new = Some(text);
    Ok(())
}

/// Mounts a server; a failure leaves nothing behind.
async fn mount(client: &Client, name: &str, server: &HttpServer) -> Result<String, Failure> {
    let (credential_id, vault_id) = match &server.secret {
        Some(secret) => {
            let (auth_type, field) = match secret.header {
                None => (AuthType::BearerToken, "token"),
                Some(_) => (AuthType::ApiKey, "api_key"),
            };
            let placement = secret.header.as_ref().map(|header| json!({"location": "header", "header_name": header}));
            let metadata: Map<String, Value> = placement.into_iter().map(|auth| ("auth".to_owned(), auth)).collect();
            (Some(create_credential(client, name, auth_type, metadata, (field, &secret.value)).await?), None)
        }
        None => (None, Some(mounts_vault(client).await?)),
    };
    let body = MountRequest {
        name: typed("name", name)?,
        url: Some(server.url.clone()),
        trusted: None,
        hidden_characters: None,
        credential_id,
        vault_id,
    };
    match client.to::<CreateMount>().body(&body).send().await {
        Ok(mounted) => Ok(format!(
            "{name} was mounted; {} tools wait for review: toolgate mount review {name}",
            mounted.tools.len()
        )),
        Err(error) => {
            if let Some(created) = credential_id {
                let body = Reason { reason: typed_option("reason", Some("the server was not mounted"))? };
                client.to::<RevokeCredential>().named(&created.to_string()).body(&body).send().await?;
            }
            Err(error.into())
        }
    }
}

/// Stores the key of a process, whose entry is in the file of mounts.
async fn store_key(client: &Client, name: &str, process: &ProcessServer) -> Result<String, Failure> {
    let option = match &process.secret {
        Some((_, secret)) => {
            let id = create_credential(client, name, AuthType::ApiKey, Map::new(), ("api_key", secret)).await?;
            format!(" --credential {id}")
        }
        None => String::new(),
    };
    Ok(format!("{name} is in the file of mounts: restart the gate, and run: toolgate mount add {name}{option}"))
}

async fn create_credential(
    client: &Client,
    service: &str,
    auth_type: AuthType,
    metadata: Map<String, Value>,
    (field, secret): (&str, &Secret),
) -> Result<CredentialId, Failure> {
    let mut material = Material::new();
    material.insert(field.to_owned(), Secret::new(secret.expose().to_owned()));
    let body = CredentialInVaultRequest {
        vault_id: None,
        service: typed("service", service)?,
        label: typed("label", format!("MCP server {service}"))?,
        auth_type,
        scopes_available: typed("scopes_available", Vec::<String>::new())?,
        metadata: Some(Metadata(metadata)),
        material: Value::Null,
        expires_at: None,
    };
    let vault = mounts_vault(client).await?;
    let request = client.to::<CreateCredentialInVault>().named(&vault.to_string());
    Ok(request.secret_body(body_with(&body, &material)).send().await?.id)
}

fn same_url(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}
