//! `toolgate key`: keys of agents, users and services.

use clap::{Args, Subcommand};
use toolgate_api::agents::{CreateKey, KeyRequest, ListKeys, RevokeKey};
use toolgate_api::reply::ShownKey;
use toolgate_model::certificate::CertificateName;
use toolgate_model::token_subject::TokenSubject;

use super::values::{Expiry, typed, typed_option};
use super::{Connection, Failure, typos};
use crate::output::{Report, clean, table_of};

/// Create, list and revoke keys
#[derive(Args)]
pub(crate) struct Key {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Create a key, which is shown once, or register a client certificate or a token subject
    #[command(
        after_help = "Examples:\n  toolgate key create billing-agent --label laptop --expires 90d\n  toolgate key create billing-agent --spiffe-id spiffe://example.org/billing\n  toolgate key create billing-agent --token-issuer https://login.example.com --token-subject billing"
    )]
    Create {
        /// Id of the agent, user or service
        agent: String,
        /// Expiry: a time, or a duration such as 8h or 7d [default: never]
        #[arg(long, value_name = "TIME", value_parser = Expiry::parse_end)]
        expires: Option<Expiry>,
        /// Label for people
        #[arg(long)]
        label: Option<String>,
        /// Register client certificates with this SPIFFE id instead of creating a key
        #[arg(long, value_name = "URI", conflicts_with = "certificate_sha256")]
        spiffe_id: Option<String>,
        /// Register the client certificate with this SHA-256 instead of creating a key
        #[arg(long, value_name = "HEX")]
        certificate_sha256: Option<String>,
        /// Register the subject of access tokens of this issuer instead of creating a key
        #[arg(long, value_name = "URL", requires = "token_subject", conflicts_with_all = ["spiffe_id", "certificate_sha256"])]
        token_issuer: Option<String>,
        /// Subject in the access tokens of that issuer
        #[arg(long, value_name = "SUBJECT", requires = "token_issuer")]
        token_subject: Option<String>,
    },
    /// List the keys of an agent, without the secrets
    #[command(after_help = "Example:\n  toolgate key list billing-agent")]
    List {
        /// Id of the agent, user or service
        agent: String,
    },
    /// Revoke a key
    #[command(after_help = "Example:\n  toolgate key revoke key_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Revoke {
        /// Key id, from `toolgate key list`
        id: String,
    },
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { agent, expires, label, spiffe_id, certificate_sha256, token_issuer, token_subject } => {
                let certificate = match (spiffe_id, certificate_sha256) {
                    (Some(id), _) => Some(CertificateName::SpiffeId(typed("certificate", id)?)),
                    (None, sha256) => typed_option("certificate", sha256)?.map(CertificateName::Sha256),
                };
                let token_subject = match token_issuer.zip(token_subject) {
                    Some((issuer, subject)) => Some(TokenSubject {
                        issuer: typed("token_subject.issuer", issuer)?,
                        subject: typed("token_subject.subject", subject)?,
                    }),
                    None => None,
                };
                let represents = match (&certificate, &token_subject) {
                    (Some(_), _) => Some("client certificate"),
                    (None, Some(_)) => Some("token subject"),
                    (None, None) => None,
                };
                let body = KeyRequest {
                    label: typed_option("label", label)?,
                    expires_at: expires.and_then(Expiry::time),
                    certificate,
                    token_subject,
                };
                let new = match client.to::<CreateKey>().named(&agent).body(&body).send().await {
                    Ok(new) => new,
                    Err(error) => return Err(typos::with_agent(&client, error, &agent).await),
                };
                let (id, holder) = (&new.record.id, &new.record.agent_id);
                let text = match represents {
                    Some(noun) => format!("Key {id}: the {noun} {} identifies {holder}.", clean(&new.record.hint)),
                    None => {
                        let key = new.key.as_ref().map_or("", ShownKey::expose);
                        format!("Key {id} of {holder}, which is not shown again:\n\n    {}\n", clean(key))
                    }
                };
                Ok(Report::new(new, text))
            }
            Self::List { agent } => {
                let keys = client.to::<ListKeys>().named(&agent).send().await?;
                let columns = [
                    ("ID", "id"),
                    ("HINT", "hint"),
                    ("LABEL", "label"),
                    ("CREATED", "created_at"),
                    ("EXPIRES", "expires_at"),
                    ("REVOKED", "revoked_at"),
                    ("LAST USED", "last_used_at"),
                ];
                let text = table_of(&keys.keys, &columns);
                Ok(Report::new(keys, text))
            }
            Self::Revoke { id } => {
                let key = client.to::<RevokeKey>().named(&id).send().await?;
                let text = format!("Key {} of {} revoked.", key.record.id, key.record.agent_id);
                Ok(Report::new(key, text))
            }
        }
    }
}
