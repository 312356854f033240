//! `toolgate key`: the keys of agents, users and services.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::values::Expiry;
use super::{Connection, Failure, object, typos};
use crate::client::escaped;
use crate::output::{Report, at, plain, table};

/// Make, list and revoke keys
#[derive(Args)]
pub(crate) struct Key {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Make a key, which is shown once, or register a client certificate as one
    #[command(
        after_help = "Examples:\n  toolgate key create billing-agent --label laptop --expires 90d\n  toolgate key create billing-agent --spiffe-id spiffe://example.org/billing"
    )]
    Create {
        /// Whose key
        agent: String,
        /// When it ends: a time, or a duration from now on, as 8h or 7d; without this it does not
        #[arg(long, value_name = "TIME", value_parser = Expiry::parse_end)]
        expires: Option<Expiry>,
        /// What people call it
        #[arg(long)]
        label: Option<String>,
        /// Register the client certificates with this SPIFFE id instead of making a key
        #[arg(long, value_name = "URI", conflicts_with = "certificate_sha256")]
        spiffe_id: Option<String>,
        /// Register the client certificate with this SHA-256 instead of making a key
        #[arg(long, value_name = "HEX")]
        certificate_sha256: Option<String>,
    },
    /// List the keys of an agent; never the keys themselves
    #[command(after_help = "Example:\n  toolgate key list billing-agent")]
    List {
        /// Whose keys
        agent: String,
    },
    /// Revoke a key
    #[command(after_help = "Example:\n  toolgate key revoke key_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Revoke {
        /// The key's id, as `toolgate key list` shows it
        id: String,
    },
}

impl Action {
    /// Does what was asked.
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { agent, expires, label, spiffe_id, certificate_sha256 } => {
                let certificate = match (spiffe_id, certificate_sha256) {
                    (Some(id), _) => Some(json!({"spiffe_id": id})),
                    (None, sha256) => sha256.map(|sha256| json!({"sha256": sha256})),
                };
                let registered = certificate.is_some();
                let body = object([
                    ("expires_at", expires.map(Expiry::to_json)),
                    ("label", label.map(Value::from)),
                    ("certificate", certificate),
                ]);
                let path = format!("/api/v1/agents/{}/keys", escaped(&agent));
                let key = match client.change(Method::POST, &path, Some(&Value::Object(body))).await {
                    Ok(key) => key,
                    Err(error) => return Err(typos::with_agent(&client, error, &agent).await),
                };
                let (id, holder) = (plain(at(&key, "id")), plain(at(&key, "agent_id")));
                let text = match registered {
                    true => {
                        format!("Key {id}: the client certificate {} identifies {holder}.", plain(at(&key, "hint")))
                    }
                    false => format!("Key {id} of {holder}, shown this once only:\n\n    {}\n", plain(at(&key, "key"))),
                };
                Ok(Report::new(key, text))
            }
            Self::List { agent } => {
                let keys = client.get(&format!("/api/v1/agents/{}/keys", escaped(&agent))).await?;
                let columns = [
                    ("ID", "id"),
                    ("HINT", "hint"),
                    ("LABEL", "label"),
                    ("CREATED", "created_at"),
                    ("EXPIRES", "expires_at"),
                    ("REVOKED", "revoked_at"),
                    ("LAST USED", "last_used_at"),
                ];
                let rows = keys.get("keys").and_then(Value::as_array).cloned().unwrap_or_default();
                let text = table(&rows, &columns);
                Ok(Report::new(keys, text))
            }
            Self::Revoke { id } => {
                let path = format!("/api/v1/keys/{}", escaped(&id));
                let key = client.change(Method::DELETE, &path, None).await?;
                let text = format!("Key {} of {} was revoked.", plain(at(&key, "id")), plain(at(&key, "agent_id")));
                Ok(Report::new(key, text))
            }
        }
    }
}
