//! Mounting a server, with its credential where it needs one.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use toolgate_api::credentials::{
    CreateCredentialInVault, CredentialInVaultRequest, Metadata, Reason, RevokeCredential,
};
use toolgate_api::mounts::{
    AcceptRequest, CreateMount, CreatePeer, HiddenCharacters, Mount, MountRequest, PeerRequest, ReviewMount,
};
use toolgate_api::parameters::Paging;
use toolgate_api::vaults::{CreateVault, ListVaults, VaultRequest};
use toolgate_model::credential::AuthType;
use toolgate_model::id::{CredentialId, VaultId};

use super::{accept, granting, review};
use crate::client::Client;
use crate::command::Failure;
use crate::command::credential::auth_types;
use crate::command::material::{self, body_with};
use crate::command::values::{read_object, typed, typed_option};
use crate::output::{self, Report};

/// The vault of credentials of mounts, where none is named.
const VAULT: &str = "mounts";

/// A server to be mounted.
#[derive(Args)]
pub(crate) struct Add {
    /// Name of the mount, which is the service of its tools
    name: String,
    /// Endpoint [default: the process that the operator has configured under this name]
    #[arg(value_name = "URL")]
    endpoint: Option<String>,
    /// Trust hints of the server that a tool is harmless
    #[arg(long)]
    trusted: bool,
    /// How to treat hidden characters
    #[arg(long, value_name = "RULE", value_parser = ["show", "strip", "keep"])]
    hidden_characters: Option<String>,
    /// Type of authentication; prompts for the secret, or reads it from standard input [default: none]
    #[arg(long, value_name = "TYPE", value_parser = auth_types())]
    auth_type: Option<String>,
    /// Header for the secret
    #[arg(long, value_name = "NAME", requires = "auth_type", conflicts_with = "query")]
    header: Option<String>,
    /// Text before the secret in the header
    #[arg(long, value_name = "TEXT", requires = "header")]
    prefix: Option<String>,
    /// Query parameter for the secret
    #[arg(long, value_name = "NAME", requires = "auth_type")]
    query: Option<String>,
    /// File with metadata of the credential as a JSON object, such as a token endpoint
    #[arg(long, value_name = "FILE", requires = "auth_type")]
    metadata: Option<PathBuf>,
    /// Read the secrets from standard input, as a JSON object of fields
    #[arg(long, requires = "auth_type")]
    material_stdin: bool,
    /// Existing credential of this service
    #[arg(long, value_name = "ID", conflicts_with_all = ["auth_type", "vault"])]
    credential: Option<String>,
    /// Vault of the credential [default: a vault named `mounts`]
    #[arg(long, value_name = "ID")]
    vault: Option<String>,
    /// Accept the server and all its tools as they are shown
    #[arg(long)]
    accept_all: bool,
    /// Accept despite blocking findings, which are recorded in the audit log
    #[arg(long, requires = "accept_all")]
    override_findings: bool,
}

/// What is added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// A peer agent.
    Peer,
    /// An MCP server.
    Server,
}

impl Add {
    pub(crate) async fn run(self, client: &Client, json: bool, added: Added) -> Result<Report, Failure> {
        let created = match &self.auth_type {
            Some(auth_type) => Some(self.create_credential(client, auth_type).await?),
            None => None,
        };
        let given: Option<CredentialId> = typed_option("credential_id", self.credential.clone())?;
        let credential_id = created.or(given);
        let vault_id = if credential_id.is_none() { Some(self.vault(client).await?) } else { None };
        let sent = match added {
            Added::Server => self.mount(client, credential_id, vault_id).await,
            Added::Peer => self.peer(client, credential_id, vault_id).await,
        };
        let mounted = match sent {
            Ok(mounted) => mounted,
            Err(error) => {
                if let Some(created) = created {
                    let body = Reason { reason: typed_option("reason", Some("the server was not mounted"))? };
                    client.to::<RevokeCredential>().named(&created.to_string()).body(&body).send().await?;
                }
                return Err(error);
            }
        };
        let shown = client.to::<ReviewMount>().named(&self.name).send().await?;
        let server = &mounted.summary.server;
        let what = match added {
            Added::Server => "was mounted: server",
            Added::Peer => "was added: agent",
        };
        let tools = match added {
            Added::Server => format!(", {} tools", mounted.tools.len()),
            Added::Peer => String::new(),
        };
        let text = format!(
            "{} {what} {} {}{tools}. Nothing of it can be used before it is accepted.\n\n{}",
            mounted.summary.name,
            output::clean(&server.name),
            output::clean(&server.version),
            review::rendered(&shown)
        );
        if !self.accept_all {
            let aside =
                format!("Accept with `toolgate mount review {} --accept-all`, or name tools.", mounted.summary.name);
            return Ok(Report::new(json!({"mount": mounted, "review": shown}), text).with_aside(aside));
        }
        if !json {
            output::print(&text).map_err(|error| Failure::io("standard output", error))?;
        }
        let names: Vec<String> = shown.tools.iter().map(|tool| tool.upstream.clone()).collect();
        let body = AcceptRequest {
            server: shown.server.as_ref().map(|server| server.hash.clone()),
            tools: review::hashes(&shown, &names)?,
            override_findings: self.override_findings.then_some(true),
        };
        let mounted = accept(client, &self.name, &body).await?;
        let text = match added {
            Added::Server => format!("{} tools were accepted.", mounted.summary.accepted),
            Added::Peer => "the card was accepted.".to_owned(),
        };
        let aside = granting(&mounted);
        Ok(Report::new(json!({"mount": mounted, "review": shown}), text).with_aside(aside))
    }

    async fn mount(
        &self,
        client: &Client,
        credential_id: Option<CredentialId>,
        vault_id: Option<VaultId>,
    ) -> Result<Mount, Failure> {
        let body = MountRequest {
            name: typed("name", &self.name)?,
            url: self.endpoint.clone(),
            trusted: self.trusted.then_some(true),
            hidden_characters: typed_option::<HiddenCharacters>("hidden_characters", self.hidden_characters.clone())?,
            credential_id,
            vault_id,
        };
        Ok(client.to::<CreateMount>().body(&body).send().await?)
    }

    async fn peer(
        &self,
        client: &Client,
        credential_id: Option<CredentialId>,
        vault_id: Option<VaultId>,
    ) -> Result<Mount, Failure> {
        let url = self.endpoint.clone().ok_or_else(|| Failure::Usage("name the URL of the agent".to_owned()))?;
        let body = PeerRequest { name: typed("name", &self.name)?, url, credential_id, vault_id };
        Ok(client.to::<CreatePeer>().body(&body).send().await?)
    }

    async fn create_credential(&self, client: &Client, auth_type: &str) -> Result<CredentialId, Failure> {
        let auth_type = AuthType::parse(auth_type)
            .ok_or_else(|| Failure::Usage(format!("unknown auth type `{}`", output::clean(auth_type))))?;
        let mut metadata = match &self.metadata {
            Some(file) => read_object(file)?,
            None => Map::new(),
        };
        if let Some(placement) = self.placement() {
            metadata.insert("auth".to_owned(), placement);
        }
        let material = material::read(auth_type, self.material_stdin)?;
        let vault = self.vault(client).await?;
        let body = CredentialInVaultRequest {
            vault_id: None,
            service: typed("service", &self.name)?,
            label: typed("label", format!("MCP server {}", self.name))?,
            auth_type,
            scopes_available: typed("scopes_available", Vec::<String>::new())?,
            metadata: Some(Metadata(metadata)),
            material: Value::Null,
            expires_at: None,
        };
        let request = client.to::<CreateCredentialInVault>().named(&vault.to_string());
        Ok(request.secret_body(body_with(&body, &material)).send().await?.id)
    }

    /// Where the secret is put, as the metadata of credentials says it.
    fn placement(&self) -> Option<Value> {
        match (&self.header, &self.query) {
            (Some(header), _) => {
                let mut placement = json!({"location": "header", "header_name": header});
                if let (Some(prefix), Some(members)) = (&self.prefix, placement.as_object_mut()) {
                    members.insert("header_prefix".to_owned(), json!(prefix));
                }
                Some(placement)
            }
            (None, Some(query)) => Some(json!({"location": "query", "query_param": query})),
            (None, None) => None,
        }
    }

    /// The vault that is named, or the one for mounts, made where there is none yet.
    async fn vault(&self, client: &Client) -> Result<VaultId, Failure> {
        if let Some(id) = &self.vault {
            return typed("vault_id", id);
        }
        mounts_vault(client).await
    }
}

/// The vault for mounts, made where there is none yet.
pub(crate) async fn mounts_vault(client: &Client) -> Result<VaultId, Failure> {
    let page = client.to::<ListVaults>().query(&Paging { limit: None, cursor: None }).send().await?;
    if let Some(vault) = page.vaults.into_iter().find(|vault| vault.name.as_str() == VAULT) {
        return Ok(vault.id);
    }
    let body = VaultRequest { owner_id: None, name: typed("name", VAULT)? };
    Ok(client.to::<CreateVault>().body(&body).send().await?.id)
}
