//! `toolgate credential`. Secrets are read from a prompt or standard input, and never shown.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use toolgate_api::credentials::{
    CreateCredentialInVault, CredentialInVaultRequest, CredentialPage, ListCredentials, Metadata, Reason,
    RevokeCredential, RotateCredential, RotationRequest, ShowCredential, VerifyCredential,
};
use toolgate_api::parameters;
use toolgate_model::credential::AuthType;
use toolgate_model::secret::Material;

use super::material::{self, body_with};
use super::paging::{Paging, Shown};
use super::values::{Expiry, read_object, typed, typed_option};
use super::{Connection, Failure, typos};
use crate::client::Client;
use crate::output::{Report, plain};
use crate::prompt;

/// Add, rotate and revoke credentials
#[derive(Args)]
pub(crate) struct Credential {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Add a credential to a vault; prompts for its secrets, or reads them from standard input
    #[command(
        after_help = "Example:\n  toolgate credential add VAULT stripe 'Stripe live key' --auth-type api_key --scope charges.read < key.txt\n  echo '{\"username\": \"ann\", \"password\": \"...\"}' | \\\n    toolgate credential add VAULT wiki Wiki --auth-type basic_auth --material-stdin"
    )]
    Add(Box<Add>),
    /// List the credentials of a vault
    #[command(after_help = "Example:\n  toolgate credential list vault_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    List {
        /// Vault id
        vault: String,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a credential, without its secrets
    #[command(after_help = "Example:\n  toolgate credential show cred_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Credential id
        id: String,
    },
    /// Replace the secrets of a credential; its id and grants stay
    #[command(after_help = "Example:\n  toolgate credential rotate cred_01ARZ3NDEKTSV4RRFFQ69G5FAV < new-key.txt")]
    Rotate {
        /// Credential id
        id: String,
        #[command(flatten)]
        secrets: Secrets,
        /// File with the new metadata as a JSON object, or - for standard input
        #[arg(long, value_name = "FILE")]
        metadata: Option<PathBuf>,
        /// Expiry: a time, a duration such as 90d, or never [default: unchanged]
        #[arg(long, value_name = "TIME", value_parser = Expiry::parse)]
        expires: Option<Expiry>,
    },
    /// Revoke a credential permanently; its secrets are destroyed and its grants revoked
    #[command(
        after_help = "Example:\n  toolgate credential revoke cred_01ARZ3NDEKTSV4RRFFQ69G5FAV --reason leaked --yes"
    )]
    Revoke {
        /// Credential id
        id: String,
        /// Reason, for the audit log
        #[arg(long)]
        reason: Option<String>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Check that the secrets of a credential can be unsealed; they are not shown
    #[command(after_help = "Example:\n  toolgate credential verify cred_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Verify {
        /// Credential id
        id: String,
    },
}

#[derive(Args)]
pub(crate) struct Add {
    /// Vault id
    vault: String,
    /// Name of the service that the credential gives access to
    service: String,
    /// Label for people
    label: String,
    /// How the service authenticates requests
    #[arg(long, default_value = "api_key", value_name = "TYPE", value_parser = auth_types())]
    auth_type: String,
    /// Scope that it has at the service; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// File with metadata as a JSON object, or - for standard input
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
    /// Expiry: a time, or a duration such as 90d [default: never]
    #[arg(long, value_name = "TIME", value_parser = Expiry::parse_end)]
    expires: Option<Expiry>,
    #[command(flatten)]
    secrets: Secrets,
}

#[derive(Args)]
pub(crate) struct Secrets {
    /// Read the secrets from standard input, as a JSON object of fields
    #[arg(long)]
    material_stdin: bool,
    /// Add it without secrets, for a later rotation or if the metadata contains them
    #[arg(long, conflicts_with = "material_stdin")]
    no_material: bool,
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Add(add) => add.run(&client).await,
            Self::List { vault, paging } => {
                let columns = [
                    ("ID", "id"),
                    ("SERVICE", "service"),
                    ("LABEL", "label"),
                    ("TYPE", "auth_type"),
                    ("STATUS", "status"),
                    ("VERSION", "version"),
                    ("EXPIRES", "expires_at"),
                ];
                let shown = Shown { name: "credentials", columns: &columns };
                let query = |limit, cursor| Ok(parameters::Paging { limit, cursor });
                let page = |page: CredentialPage| (page.credentials, page.next_cursor);
                paging.fetch::<ListCredentials, _>(&client, Some(&vault), query, page, shown).await
            }
            Self::Show { id } => {
                Ok(Report::details(shown(json!(client.to::<ShowCredential>().named(&id).send().await?))))
            }
            Self::Rotate { id, secrets, metadata, expires } => rotate(&client, &id, secrets, metadata, expires).await,
            Self::Revoke { id, reason, yes } => {
                prompt::confirm(
                    &format!("this permanently revokes {id}, destroys its secrets and revokes its grants"),
                    yes,
                )?;
                let body = Reason { reason: typed_option("reason", reason)? };
                let revoked = client.to::<RevokeCredential>().named(&id).body(&body).send().await?;
                let text = format!("{} revoked, with {} grants.", revoked.credential_id, revoked.affected_grants_count);
                Ok(Report::new(revoked, text))
            }
            Self::Verify { id } => {
                let verified = client.to::<VerifyCredential>().named(&id).send().await?;
                let text = format!(
                    "{} is {}; its material (version {}) is {}.",
                    verified.credential_id,
                    plain(&json!(verified.status)),
                    verified.version,
                    plain(&json!(verified.material))
                );
                Ok(Report::new(verified, text))
            }
        }
    }
}

impl Add {
    async fn run(self, client: &Client) -> Result<Report, Failure> {
        let auth_type = parsed(&self.auth_type)?;
        let (metadata, material) = self.secrets.read(auth_type, self.metadata)?;
        let body = CredentialInVaultRequest {
            vault_id: None,
            service: typed("service", &self.service)?,
            label: typed("label", &self.label)?,
            auth_type,
            scopes_available: typed("scopes_available", &self.scopes)?,
            metadata: metadata.map(Metadata),
            material: Value::Null,
            expires_at: self.expires.and_then(Expiry::time),
        };
        let request = client.to::<CreateCredentialInVault>().named(&self.vault);
        let credential = request.secret_body(body_with(&body, &material)).send().await?;
        typos::warn_of_service(client, &self.service).await;
        typos::warn_of_mistyped_scopes(client, &self.service, &self.scopes).await;
        let text = format!("Credential {} added.", credential.id);
        Ok(Report::new(credential, text))
    }
}

impl Secrets {
    /// Reads metadata and material, of which only one can come from standard input.
    fn read(
        &self,
        auth_type: AuthType,
        metadata: Option<PathBuf>,
    ) -> Result<(Option<Map<String, Value>>, Material), Failure> {
        let metadata_on_stdin = metadata.as_ref().is_some_and(|path| path.as_os_str() == "-");
        if metadata_on_stdin && !self.no_material {
            let sentence = "standard input cannot contain both metadata and secrets; put the metadata into a file";
            return Err(Failure::Usage(sentence.to_owned()));
        }
        let metadata = metadata.as_ref().map(read_object).transpose()?;
        let material = if self.no_material { Material::new() } else { material::read(auth_type, self.material_stdin)? };
        Ok((metadata, material))
    }
}

async fn rotate(
    client: &Client,
    id: &str,
    secrets: Secrets,
    metadata: Option<PathBuf>,
    expires: Option<Expiry>,
) -> Result<Report, Failure> {
    let before = client.to::<ShowCredential>().named(id).send().await?;
    let (metadata, material) = secrets.read(before.auth_type, metadata)?;
    let body = RotationRequest {
        material: Value::Null,
        metadata: metadata.map(Metadata),
        expires_at: expires.map(Expiry::time),
    };
    let request = client.to::<RotateCredential>().named(id).secret_body(body_with(&body, &material));
    let credential = request.send().await?;
    let text = format!("{} rotated to version {}.", credential.id, credential.version);
    Ok(Report::new(credential, text))
}

/// Removes the copy of the metadata that exists for the Python client of OpenIntent.
fn shown(mut credential: Value) -> Value {
    if let Value::Object(members) = &mut credential {
        members.remove("credential_metadata");
    }
    credential
}

fn parsed(text: &str) -> Result<AuthType, Failure> {
    AuthType::parse(text).ok_or_else(|| Failure::Said(format!("unknown auth type `{text}`")))
}

pub(super) fn auth_types() -> clap::builder::PossibleValuesParser {
    AuthType::ALL.map(AuthType::as_str).into()
}
