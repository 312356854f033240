//! `toolgate agent`: the agents, users and services of a tenant.

use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_api::agents::{
    AgentChanges, AgentPage, CreateAgent, ListAgents, RemoveAgent, ShowAgent, StoredAgent, UpdateAgent,
};
use toolgate_api::parameters;

use self::terms::{Terms, Withdrawals};
use super::paging::{Paging, Shown};
use super::{Connection, Failure, typos};
use crate::output::{Report, plain};
use crate::prompt;

mod terms;

/// Register, change, show and remove agents, users and services
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
    /// Without --permission it gets tools.invoke: it may use the grants that it holds, and nothing else.
    #[command(
        after_help = "Example:\n  toolgate agent create billing-agent --name 'Billing' \\\n    --permission tools.invoke --permission tools.delegate --scope tools:mail:send \\\n    --rate-limit mail.send=10/60 --allow-tool connector:mail.send \\\n    --label untrusted"
    )]
    Create {
        /// Id of the new principal, unique in the tenant; it cannot be changed
        id: String,
        /// Display name
        #[arg(long)]
        name: Option<String>,
        /// Kind of principal
        #[arg(long, value_parser = ["agent", "user", "service"], default_value = "agent")]
        kind: String,
        #[command(flatten)]
        terms: Terms,
    },
    /// List agents, users and services
    #[command(after_help = "Example:\n  toolgate agent list")]
    List(Paging),
    /// Show an agent, user or service
    #[command(after_help = "Example:\n  toolgate agent show billing-agent")]
    Show {
        /// Id of the agent, user or service
        id: String,
    },
    /// Change an agent, user or service
    ///
    /// Attributes without an option stay as they are. A list replaces the previous list.
    #[command(
        after_help = "Example:\n  toolgate agent update billing-agent --scope tools:payments:* --rate-limit '*=100/1m' --any-tool"
    )]
    Update {
        /// Id of the agent, user or service
        id: String,
        /// Display name
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        terms: Terms,
        #[command(flatten)]
        withdrawals: Withdrawals,
    },
    /// Remove an agent, user or service permanently, with its keys and grants
    #[command(after_help = "Example:\n  toolgate agent remove billing-agent --yes")]
    Remove {
        /// Id of the agent, user or service
        id: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { id, name, kind, terms } => {
                let body = terms.request(&id, &kind, name)?;
                let stored = client.to::<CreateAgent>().body(&body).send().await?;
                typos::warn_of_principal_scopes(&client, terms.scopes()).await;
                let (id, kind) = (&stored.agent.id, stored.agent.kind.as_str());
                let mut text =
                    format!("The {kind} {id} was registered. Create a key for it with: toolgate key create {id}");
                text.push_str(&unresolved(&stored));
                Ok(Report::new(stored, text))
            }
            Self::Update { id, name, terms, withdrawals } => {
                let body = terms.changes(name, &withdrawals)?;
                if json!(body) == json!(AgentChanges::default()) {
                    return Err(Failure::Usage(
                        "nothing to change; pass what to change, such as --name or --scope".to_owned(),
                    ));
                }
                let stored = match client.to::<UpdateAgent>().named(&id).body(&body).send().await {
                    Ok(stored) => stored,
                    Err(error) => return Err(typos::with_agent(&client, error, &id).await),
                };
                typos::warn_of_principal_scopes(&client, terms.scopes()).await;
                let text = format!("{} is now at revision {}.", stored.agent.id, stored.agent.revision);
                let text = text + &unresolved(&stored);
                Ok(Report::new(stored, text))
            }
            Self::List(paging) => {
                let columns = [
                    ("ID", "id"),
                    ("KIND", "kind"),
                    ("NAME", "name"),
                    ("PERMISSIONS", "permissions"),
                    ("SCOPES", "scopes"),
                    ("RATE LIMITS", "rate_limits"),
                    ("ALLOWED TOOLS", "tool_allowlist"),
                    ("CREATED", "created_at"),
                ];
                let shown = Shown { name: "agents", columns: &columns };
                let query = |limit, cursor| Ok(parameters::Paging { limit, cursor });
                let page = |page: AgentPage| (page.agents, page.next_cursor);
                paging.fetch::<ListAgents, _>(&client, None, query, page, shown).await
            }
            Self::Show { id } => Ok(Report::details(client.to::<ShowAgent>().named(&id).send().await?)),
            Self::Remove { id, yes } => {
                prompt::confirm(
                    &format!(
                        "this permanently removes `{id}`, its keys, its grants and all grants delegated from them"
                    ),
                    yes,
                )?;
                let removed = client.to::<RemoveAgent>().named(&id).send().await?;
                let text = format!(
                    "{} was removed; {} keys and {} grants were revoked.",
                    removed.agent_id, removed.revoked_keys, removed.revoked_grants
                );
                Ok(Report::new(removed, text))
            }
        }
    }
}

/// A warning about tools of the allowlist that do not exist.
fn unresolved(stored: &StoredAgent) -> String {
    if stored.unresolved_tools.is_empty() {
        return String::new();
    }
    format!("\nThese tools do not exist yet: {}", plain(&json!(stored.unresolved_tools)))
}
