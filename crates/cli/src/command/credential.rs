//! `toolgate credential`: sealed credentials. Their secrets come from a prompt or from standard input, and never back.

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
    /// Add a credential to a vault; its secrets are asked for, or read from standard input
    #[command(
        after_help = "Example:\n  toolgate credential add VAULT stripe 'Stripe live key' --auth-type api_key --scope charges.read < key.txt\n  echo '{\"username\": \"ann\", \"password\": \"...\"}' | \\\n    toolgate credential add VAULT wiki Wiki --auth-type basic_auth --material-stdin"
    )]
    Add(Box<Add>),
    /// List the credentials of a vault
    #[command(after_help = "Example:\n  toolgate credential list vault_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    List {
        /// The vault's id
        vault: String,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show one; never its secrets
    #[command(after_help = "Example:\n  toolgate credential show cred_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Its id
        id: String,
    },
    /// Replace the secrets of one; its id and grants stay
    #[command(after_help = "Example:\n  toolgate credential rotate cred_01ARZ3NDEKTSV4RRFFQ69G5FAV < new-key.txt")]
    Rotate {
        /// Its id
        id: String,
        #[command(flatten)]
        secrets: Secrets,
        /// A file with the new metadata as a JSON object, or - for standard input
        #[arg(long, value_name = "FILE")]
        metadata: Option<PathBuf>,
        /// When it ends: a time, a duration from now on, as 90d, or never; without this that stays as it is
        #[arg(long, value_name = "TIME", value_parser = Expiry::parse)]
        expires: Option<Expiry>,
    },
    /// Revoke one for good; its secrets are destroyed and its grants revoked
    #[command(
        after_help = "Example:\n  toolgate credential revoke cred_01ARZ3NDEKTSV4RRFFQ69G5FAV --reason leaked --yes"
    )]
    Revoke {
        /// Its id
        id: String,
        /// Why, for the log
        #[arg(long)]
        reason: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Check that the sealed secrets of one still open; they are not shown
    #[command(after_help = "Example:\n  toolgate credential verify cred_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Verify {
        /// Its id
        id: String,
    },
}

/// A credential to be added.
#[derive(Args)]
pub(crate) struct Add {
    /// The vault's id
    vault: String,
    /// The service that it opens
    service: String,
    /// What people call it
    label: String,
    /// How it authenticates
    #[arg(long, default_value = "api_key", value_name = "TYPE", value_parser = auth_types())]
    auth_type: String,
    /// What it can do at the service; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// A file with what else is known, as a JSON object, or - for standard input
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
    /// When it ends: a time, or a duration from now on, as 90d; without this it does not
    #[arg(long, value_name = "TIME", value_parser = Expiry::parse_end)]
    expires: Option<Expiry>,
    #[command(flatten)]
    secrets: Secrets,
}

/// How the secrets are handed over.
#[derive(Args)]
pub(crate) struct Secrets {
    /// Read the secrets from standard input, as a JSON object of fields
    #[arg(long)]
    material_stdin: bool,
    /// Leave the secrets for a later rotation, or to the metadata
    #[arg(long, conflicts_with = "material_stdin")]
    no_material: bool,
}

impl Action {
    /// Does what was asked.
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
                    &format!("this revokes {id} for good, destroys its secrets and revokes its grants"),
                    yes,
                )?;
                let body = Reason { reason: typed_option("reason", reason)? };
                let revoked = client.to::<RevokeCredential>().named(&id).body(&body).send().await?;
                let text = format!(
                    "{} was revoked, and {} grants with it.",
                    revoked.credential_id, revoked.affected_grants_count
                );
                Ok(Report::new(revoked, text))
            }
            Self::Verify { id } => {
                let verified = client.to::<VerifyCredential>().named(&id).send().await?;
                let text = format!(
                    "{} is {}; its material, version {}, is {}.",
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
        let text = format!("Credential {} was added.", credential.id);
        Ok(Report::new(credential, text))
    }
}

impl Secrets {
    /// The metadata and the material, of which only one can come from standard input.
    fn read(
        &self,
        auth_type: AuthType,
        metadata: Option<PathBuf>,
    ) -> Result<(Option<Map<String, Value>>, Material), Failure> {
        let metadata_on_stdin = metadata.as_ref().is_some_and(|path| path.as_os_str() == "-");
        if metadata_on_stdin && !self.no_material {
            let sentence = "standard input cannot hold both the metadata and the secrets; put the metadata into a file";
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
    let text = format!("{} was rotated: version {}.", credential.id, credential.version);
    Ok(Report::new(credential, text))
}

/// Without the second name of the metadata, which is there for a client that knows no other.
fn shown(mut credential: Value) -> Value {
    if let Value::Object(members) = &mut credential {
        members.remove("credential_metadata");
    }
    credential
}

fn parsed(text: &str) -> Result<AuthType, Failure> {
    AuthType::parse(text).ok_or_else(|| Failure::Said(format!("the auth type `{text}` is not known")))
}

fn auth_types() -> clap::builder::PossibleValuesParser {
    [
        "api_key",
        "basic_auth",
        "bearer_token",
        "connection_string",
        "custom",
        "oauth2_client_credentials",
        "oauth2_token",
        "webhook",
    ]
    .into()
}

#[cfg(test)]
mod tests {
    use clap::builder::TypedValueParser;

    use super::*;

    #[test]
    fn every_auth_type_that_is_offered_is_known() {
        let offered: Vec<_> =
            auth_types().possible_values().unwrap().map(|value| value.get_name().to_owned()).collect();
        assert_eq!(offered.len(), 8);
        assert!(offered.iter().all(|name| AuthType::parse(name).is_some()));
    }
}
