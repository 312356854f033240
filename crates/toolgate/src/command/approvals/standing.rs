//! `toolgate approvals standing`: answers that also cover later calls; what they cover, and taking them back.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};
use toolgate_model::strict_json;

use crate::client::{Client, escaped};
use crate::command::paging::Paging;
use crate::command::{Failure, object};
use crate::output::{Report, at, plain};

#[derive(Subcommand)]
pub(crate) enum Standing {
    /// List those that still cover something
    #[command(after_help = "Example:\n  toolgate approvals standing list --agent coder")]
    List {
        /// Of this agent's calls
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// Of this tool
        #[arg(long, value_name = "SERVICE.TOOL")]
        tool: Option<String>,
        /// Also those that have ended
        #[arg(long)]
        ended: bool,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show one
    #[command(after_help = "Example:\n  toolgate approvals standing show standing_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Its id
        id: String,
    },
    /// Tell whether a call would be covered, and by what
    #[command(
        after_help = "Example:\n  toolgate approvals standing explain --agent coder --tool claude-code.Bash --arguments '{\"command\": \"cargo test\"}'"
    )]
    Explain(Explain),
    /// Take one back: the next call asks again
    #[command(after_help = "Example:\n  toolgate approvals standing revoke standing_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Revoke {
        /// Its id
        id: String,
    },
}

/// A call that nobody makes.
#[derive(Args)]
pub(crate) struct Explain {
    /// Whose call
    #[arg(long, value_name = "ID")]
    agent: String,
    /// Of which tool
    #[arg(long, value_name = "SERVICE.TOOL")]
    tool: String,
    /// With which arguments, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse_arguments)]
    arguments: Value,
    /// In this session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// In this directory
    #[arg(long, value_name = "PATH", requires = "session")]
    workspace: Option<String>,
}

impl Standing {
    /// Does what was asked.
    pub(super) async fn run(self, client: &Client) -> Result<Report, Failure> {
        match self {
            Self::List { agent, tool, ended, paging } => {
                let active = (!ended).then(|| "true".to_owned());
                let parameters = [("agent_id", agent), ("tool", tool), ("active", active)];
                let columns = [
                    ("ID", "id"),
                    ("STATE", "state"),
                    ("REACH", "reach"),
                    ("USED", "used"),
                    ("EXPIRES", "expires_at"),
                    ("RULE", "rule"),
                ];
                paging.fetch(client, "/api/v1/standing-approvals", &parameters, "standing_approvals", &columns).await
            }
            Self::Show { id } => Ok(Report::details(client.get(&path_of(&id)).await?)),
            Self::Explain(explain) => explain.run(client).await,
            Self::Revoke { id } => {
                let value = client.change(Method::DELETE, &path_of(&id), None).await?;
                let text = format!("{} is {}.", plain(at(&value, "id")), plain(at(&value, "state")));
                Ok(Report::new(value, text))
            }
        }
    }
}

impl Explain {
    async fn run(self, client: &Client) -> Result<Report, Failure> {
        let workspace = self.workspace;
        let session = self.session.map(|name| {
            Value::Object(object([("name", Some(json!(name))), ("workspace", workspace.map(Value::from))]))
        });
        let body = Value::Object(object([
            ("agent_id", Some(json!(self.agent))),
            ("tool", Some(json!(self.tool))),
            ("arguments", Some(self.arguments)),
            ("session", session),
        ]));
        let answer = client.change(Method::POST, "/api/v1/standing-approvals/explain", Some(&body)).await?;
        let covered = at(&answer, "covered") == &Value::Bool(true);
        let verdict = if covered { "covered" } else { "a person would be asked" };
        let mut text = format!("{verdict}: {}\n", plain(at(&answer, "why")));
        if covered {
            text.push_str(&format!("by: {}\n", plain(at(&answer, "standing_approval_ids"))));
        }
        Ok(Report::new(answer, text).refused_if(!covered))
    }
}

fn path_of(id: &str) -> String {
    format!("/api/v1/standing-approvals/{}", escaped(id))
}

fn parse_arguments(text: &str) -> Result<Value, String> {
    match strict_json::parse(text.as_bytes()) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("write a JSON object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
