//! `toolgate tenant`: tenants, for the platform's administrator.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::paging::Paging;
use super::{Connection, Failure, object};
use crate::output::{Report, at, plain};

/// Create and list tenants
#[derive(Args)]
pub(crate) struct Tenant {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Make a tenant; its administrator's key is shown once
    #[command(after_help = "Example:\n  toolgate tenant create acme --name 'Acme Ltd'")]
    Create {
        /// Its id
        id: String,
        /// What people call it
        #[arg(long)]
        name: Option<String>,
    },
    /// List the tenants
    #[command(after_help = "Example:\n  toolgate tenant list --json")]
    List(Paging),
}

impl Action {
    /// Does what was asked.
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { id, name } => {
                let body = object([("id", Some(json!(id))), ("name", name.map(Value::from))]);
                let tenant = client.change(Method::POST, "/api/v1/tenants", Some(&Value::Object(body))).await?;
                let text = format!(
                    "Tenant {} was made. The key of its administrator `{}`, shown this once only:\n\n    {}\n",
                    plain(at(&tenant, "id")),
                    plain(at(&tenant, "administrator.id")),
                    plain(at(&tenant, "administrator.key"))
                );
                Ok(Report::new(tenant, text))
            }
            Self::List(paging) => {
                let columns = [("ID", "id"), ("NAME", "name"), ("CREATED", "created_at")];
                paging.fetch(&client, "/api/v1/tenants", &[], "tenants", &columns).await
            }
        }
    }
}
