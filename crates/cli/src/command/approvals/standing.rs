//! `toolgate approvals standing`.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use toolgate_api::approvals::{
    CallSession, CoverageQuestion, ExplainStandingApprovals, ListStandingApprovals, RevokeStandingApproval,
    ShowStandingApproval, StandingApprovalPage, StandingQuery,
};
use toolgate_model::strict_json;

use crate::client::Client;
use crate::command::Failure;
use crate::command::paging::{Paging, Shown};
use crate::command::values::{typed, typed_option};
use crate::output::{Report, clean, plain};

#[derive(Subcommand)]
pub(crate) enum Standing {
    /// List active standing approvals
    #[command(after_help = "Example:\n  toolgate approvals standing list --agent coder")]
    List {
        /// Only for calls of this agent
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// Only for calls of this tool
        #[arg(long, value_name = "SERVICE.TOOL")]
        tool: Option<String>,
        /// Include those that have ended
        #[arg(long)]
        ended: bool,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a standing approval
    #[command(after_help = "Example:\n  toolgate approvals standing show standing_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Standing approval id
        id: String,
    },
    /// Explain whether standing approvals would cover a call
    #[command(
        after_help = "Example:\n  toolgate approvals standing explain --agent coder --tool claude-code.Bash --arguments '{\"command\": \"cargo test\"}'"
    )]
    Explain(Explain),
    /// Revoke a standing approval: later calls require approval again
    #[command(after_help = "Example:\n  toolgate approvals standing revoke standing_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Revoke {
        /// Standing approval id
        id: String,
    },
}

#[derive(Args)]
pub(crate) struct Explain {
    /// Agent of the call
    #[arg(long, value_name = "ID")]
    agent: String,
    /// Tool of the call
    #[arg(long, value_name = "SERVICE.TOOL")]
    tool: String,
    /// Arguments as a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse_arguments)]
    arguments: Map<String, Value>,
    /// Session of the call
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Directory of the call
    #[arg(long, value_name = "PATH", requires = "session")]
    workspace: Option<String>,
}

impl Standing {
    pub(super) async fn run(self, client: &Client) -> Result<Report, Failure> {
        match self {
            Self::List { agent, tool, ended, paging } => {
                let query = |limit, cursor| {
                    Ok(StandingQuery {
                        agent_id: typed_option("agent_id", agent.as_ref())?,
                        tool: typed_option("tool", tool.as_ref())?,
                        active: (!ended).then_some(true),
                        limit,
                        cursor,
                    })
                };
                let columns = [
                    ("ID", "id"),
                    ("STATE", "state"),
                    ("REACH", "reach"),
                    ("USED", "used"),
                    ("EXPIRES", "expires_at"),
                    ("RULE", "rule"),
                ];
                let shown = Shown { name: "standing_approvals", columns: &columns };
                let page = |page: StandingApprovalPage| (page.standing_approvals, page.next_cursor);
                paging.fetch::<ListStandingApprovals, _>(client, None, query, page, shown).await
            }
            Self::Show { id } => Ok(Report::details(client.to::<ShowStandingApproval>().named(&id).send().await?)),
            Self::Explain(explain) => explain.run(client).await,
            Self::Revoke { id } => {
                let standing = client.to::<RevokeStandingApproval>().named(&id).send().await?;
                let text = format!("{} is {}.", standing.id, standing.state.as_str());
                Ok(Report::new(standing, text))
            }
        }
    }
}

impl Explain {
    async fn run(self, client: &Client) -> Result<Report, Failure> {
        let workspace = typed_option("session.workspace", self.workspace)?;
        let session = match self.session {
            Some(name) => Some(CallSession { name: typed("session.name", name)?, workspace }),
            None => None,
        };
        let body = CoverageQuestion {
            agent_id: Some(typed("agent_id", self.agent)?),
            tool: typed("tool", self.tool)?,
            arguments: self.arguments,
            session,
        };
        let explained = client.to::<ExplainStandingApprovals>().body(&body).send().await?;
        let verdict = if explained.covered { "covered" } else { "approval would be required" };
        let mut text = format!("{verdict}: {}\n", clean(&explained.why));
        if explained.covered {
            text.push_str(&format!("by: {}\n", plain(&json!(explained.standing_approval_ids))));
        }
        let covered = explained.covered;
        Ok(Report::new(explained, text).refused_if(!covered))
    }
}

fn parse_arguments(text: &str) -> Result<Map<String, Value>, String> {
    match strict_json::parse(text.as_bytes()) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("use a JSON object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
