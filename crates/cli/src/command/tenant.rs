//! `toolgate tenant`.

use clap::{Args, Subcommand};
use toolgate_api::parameters;
use toolgate_api::tenants::{CreateTenant, ListTenants, TenantPage, TenantRequest};

use super::paging::{Paging, Shown};
use super::values::{typed, typed_option};
use super::{Connection, Failure};
use crate::output::{Report, clean};

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
    /// Create a tenant; the key of its administrator is shown once
    #[command(after_help = "Example:\n  toolgate tenant create acme --name 'Acme Ltd'")]
    Create {
        /// Tenant id
        id: String,
        /// Name for people
        #[arg(long)]
        name: Option<String>,
    },
    /// List tenants
    #[command(after_help = "Example:\n  toolgate tenant list --json")]
    List(Paging),
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { id, name } => {
                let body = TenantRequest { id: typed("id", id)?, name: typed_option("name", name)? };
                let new = client.to::<CreateTenant>().body(&body).send().await?;
                let text = format!(
                    "Tenant {} created. The key of its administrator `{}`, which is not shown again:\n\n    {}\n",
                    new.tenant.id,
                    new.administrator.id,
                    clean(new.administrator.key.expose())
                );
                Ok(Report::new(new, text))
            }
            Self::List(paging) => {
                let columns = [("ID", "id"), ("NAME", "name"), ("CREATED", "created_at")];
                let shown = Shown { name: "tenants", columns: &columns };
                let query = |limit, cursor| Ok(parameters::Paging { limit, cursor });
                let page = |page: TenantPage| (page.tenants, page.next_cursor);
                paging.fetch::<ListTenants, _>(&client, None, query, page, shown).await
            }
        }
    }
}
