//! `toolgate agent`: the agents, users and services of a tenant.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use self::terms::{Terms, Withdrawals};
use super::paging::Paging;
use super::{Connection, Failure, object, typos};
use crate::client::escaped;
use crate::output::{Report, at, plain};
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
    /// Without --permission it may use the grants that it is given (tools.invoke) and nothing else.
    #[command(
        after_help = "Example:\n  toolgate agent create billing-agent --name 'Billing' \\\n    --permission tools.invoke --permission tools.delegate --scope tools:mail:send \\\n    --rate-limit mail.send=10/60 --allow-tool connector:mail.send \\\n    --label untrusted"
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
        #[command(flatten)]
        terms: Terms,
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
    /// Change one
    ///
    /// What is not said stays as it is. Each list that is said takes the place of the whole list before.
    #[command(
        after_help = "Example:\n  toolgate agent update billing-agent --scope tools:payments:* --rate-limit '*=100/1m' --any-tool"
    )]
    Update {
        /// Its id
        id: String,
        /// What people call it
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        terms: Terms,
        #[command(flatten)]
        withdrawals: Withdrawals,
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
            Self::Create { id, name, kind, terms } => {
                let mut body = terms.members()?;
                body.extend(object([
                    ("id", Some(json!(id))),
                    ("name", name.map(Value::from)),
                    ("kind", Some(json!(kind))),
                ]));
                let agent = client.change(Method::POST, "/api/v1/agents", Some(&Value::Object(body))).await?;
                typos::warn_of_principal_scopes(&client, terms.scopes()).await;
                let (id, kind) = (plain(at(&agent, "id")), plain(at(&agent, "kind")));
                let mut text =
                    format!("The {kind} {id} was registered. Make a key for it with: toolgate key create {id}");
                text.push_str(&unresolved(&agent));
                Ok(Report::new(agent, text))
            }
            Self::Update { id, name, terms, withdrawals } => {
                let mut body = terms.members()?;
                body.extend(withdrawals.members());
                body.extend(object([("name", name.map(Value::from))]));
                if body.is_empty() {
                    return Err(Failure::Usage("say what to change, for example --name or --scope".to_owned()));
                }
                let path = format!("/api/v1/agents/{}", escaped(&id));
                let agent = match client.change(Method::PATCH, &path, Some(&Value::Object(body))).await {
                    Ok(agent) => agent,
                    Err(error) => return Err(typos::with_agent(&client, error, &id).await),
                };
                typos::warn_of_principal_scopes(&client, terms.scopes()).await;
                let text = format!("{} is at revision {} now.", plain(at(&agent, "id")), plain(at(&agent, "revision")));
                let text = text + &unresolved(&agent);
                Ok(Report::new(agent, text))
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

/// A sentence about what its allowlist names in vain, where there is something.
fn unresolved(agent: &Value) -> String {
    match at(agent, "unresolved_tools") {
        Value::Array(tools) if !tools.is_empty() => {
            format!("\nThere is no such tool yet: {}", plain(at(agent, "unresolved_tools")))
        }
        _ => String::new(),
    }
}
