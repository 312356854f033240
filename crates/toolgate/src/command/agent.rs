//! `toolgate agent`: the agents, users and services of a tenant.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::paging::Paging;
use super::{Connection, Failure, object};
use crate::client::escaped;
use crate::output::{Report, at, plain};
use crate::prompt;

/// Register, show and remove agents, users and services
#[derive(Args)]
pub(crate) struct Agent {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Register an agent, a user or a service
    ///
    /// Without --permission it may use the grants that it is given (tools.invoke) and nothing else.
    #[command(
        after_help = "Example:\n  toolgate agent create billing-agent --name 'Billing' \\\n    --permission tools.invoke --permission tools.delegate"
    )]
    Create {
        /// Its id
        id: String,
        /// What people call it
        #[arg(long)]
        name: Option<String>,
        /// What it is
        #[arg(long, value_parser = ["agent", "user", "service"], default_value = "agent")]
        kind: String,
        /// What it may do; may be repeated
        #[arg(long = "permission", value_name = "PERMISSION", value_parser = permissions())]
        permissions: Vec<String>,
        /// A scope of the protocol; may be repeated
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
    },
    /// List them
    #[command(after_help = "Example:\n  toolgate agent list")]
    List(Paging),
    /// Show one
    #[command(after_help = "Example:\n  toolgate agent show billing-agent")]
    Show {
        /// Its id
        id: String,
    },
    /// Remove one for good, with its keys and grants
    #[command(after_help = "Example:\n  toolgate agent remove billing-agent --yes")]
    Remove {
        /// Its id
        id: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

impl Action {
    /// Does what was asked.
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { id, name, kind, permissions, scopes } => {
                let body = object([
                    ("id", Some(json!(id))),
                    ("name", name.map(Value::from)),
                    ("kind", Some(json!(kind))),
                    ("permissions", (!permissions.is_empty()).then(|| json!(permissions))),
                    ("scopes", (!scopes.is_empty()).then(|| json!(scopes))),
                ]);
                let agent = client.change(Method::POST, "/api/v1/agents", Some(&Value::Object(body))).await?;
                let (id, kind) = (plain(at(&agent, "id")), plain(at(&agent, "kind")));
                let text = format!("The {kind} {id} was registered. Make a key for it with: toolgate key create {id}");
                Ok(Report::new(agent, text))
            }
            Self::List(paging) => {
                let columns = [
                    ("ID", "id"),
                    ("KIND", "kind"),
                    ("NAME", "name"),
                    ("PERMISSIONS", "permissions"),
                    ("CREATED", "created_at"),
                ];
                paging.fetch(&client, "/api/v1/agents", &[], "agents", &columns).await
            }
            Self::Show { id } => Ok(Report::details(client.get(&format!("/api/v1/agents/{}", escaped(&id))).await?)),
            Self::Remove { id, yes } => {
                prompt::confirm(&format!("this removes `{id}` for good, with its keys and all grants below it"), yes)?;
                let path = format!("/api/v1/agents/{}", escaped(&id));
                let removed = client.change(Method::DELETE, &path, None).await?;
                let text = format!(
                    "{} was removed; {} keys and {} grants were revoked.",
                    plain(at(&removed, "agent_id")),
                    plain(at(&removed, "revoked_keys")),
                    plain(at(&removed, "revoked_grants"))
                );
                Ok(Report::new(removed, text))
            }
        }
    }
}

fn permissions() -> clap::builder::PossibleValuesParser {
    toolgate_model::permission::Permission::ALL.iter().map(|permission| permission.as_str()).into()
}
