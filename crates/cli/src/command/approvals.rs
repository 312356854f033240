//! `toolgate approvals`: approvals and decisions. Without a subcommand, at a terminal, it is the live inbox.

use std::io::{self, IsTerminal};

use clap::{Args, Subcommand};
use serde_json::Value;
use toolgate_api::approvals::{ApprovalPage, ApprovalQuery, ListApprovals, ShowApproval};

use self::approval::Approval;
use super::paging::{Paging, Shown};
use super::values::typed_option;
use super::{Connection, Failure};
use crate::client::Client;
use crate::output::Report;

mod approval;
mod decide;
mod feed;
mod inbox;
mod matching;
mod standing;
mod watch;

/// The width of an approval if there is no terminal.
const PAGE_WIDTH: usize = 100;

/// Decide calls that wait for approval
///
/// Without a subcommand, opens a live inbox at a terminal, and otherwise lists pending approvals.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate approvals\n  toolgate approvals list --status pending")]
pub(crate) struct Approvals {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// List approvals, newest first
    #[command(after_help = "Example:\n  toolgate approvals list --status pending --agent coder")]
    List(List),
    /// Show an approval
    #[command(after_help = "Example:\n  toolgate approvals show appr_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Approval id
        id: String,
    },
    /// Approve or deny a call
    #[command(
        after_help = "Example:\n  toolgate approvals decide appr_01ARZ3NDEKTSV4RRFFQ69G5FAV --approve\n  toolgate approvals decide appr_01ARZ3NDEKTSV4RRFFQ69G5FAV --approve --prefix 'cargo test' --scope session\n  toolgate approvals decide appr_01ARZ3NDEKTSV4RRFFQ69G5FAV --deny --reason 'use the staging database'"
    )]
    Decide(decide::Decide),
    /// Print a line for each event of an approval
    #[command(after_help = "Example:\n  toolgate approvals watch --json\n  toolgate approvals watch --once")]
    Watch(watch::Watch),
    /// List, explain and revoke standing approvals
    #[command(subcommand)]
    Standing(standing::Standing),
    /// Check which command lines prefixes would cover, without a gate
    ///
    /// Reads lines of JSON, {"command": "...", "prefixes": ["cargo "]}, and prints for each, in order, a line
    /// {"approve": true or false, "why": "..."}. Nothing is executed.
    #[command(
        after_help = "Example:\n  toolgate approvals match --stdin < lines.jsonl\n  echo '{\"command\": \"cargo build && cargo test\", \"prefixes\": [\"cargo \"]}' | toolgate approvals match --stdin"
    )]
    Match {
        /// Read the lines from standard input
        #[arg(long, required = true)]
        stdin: bool,
    },
}

#[derive(Args)]
pub(crate) struct List {
    /// Only approvals with this status
    #[arg(long, value_parser = ["pending", "approved", "denied", "timed_out", "cancelled", "orphaned"])]
    status: Option<String>,
    /// Only calls of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Only calls of this tool
    #[arg(long, value_name = "SERVICE.TOOL")]
    tool: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

pub(crate) async fn run(connection: &Connection, action: Option<Action>) -> Result<Report, Failure> {
    match action {
        // Needs neither a gate nor a key.
        Some(Action::Match { stdin: _ }) => matching::run(),
        Some(Action::List(list)) => list.run(&connection.client()?).await,
        Some(Action::Show { id }) => show(&connection.client()?, &id).await,
        Some(Action::Decide(decide)) => decide.run(&connection.client()?).await,
        Some(Action::Watch(watch)) => watch.run(&connection.client()?, connection.json).await,
        Some(Action::Standing(standing)) => standing.run(&connection.client()?).await,
        None if connection.json || !io::stdin().is_terminal() || !io::stdout().is_terminal() => {
            let waiting =
                List { status: Some("pending".to_owned()), agent: None, tool: None, paging: Paging::everything() };
            waiting.run(&connection.client()?).await
        }
        None => {
            let access = connection.access()?;
            inbox::run(&access.client()?, &access.url).await
        }
    }
}

async fn show(client: &Client, id: &str) -> Result<Report, Failure> {
    let value = client.to::<ShowApproval>().named(id).send_as::<Value>().await?;
    match Approval::read(&value) {
        Ok(approval) => {
            let text = inbox::page(&approval, PAGE_WIDTH);
            Ok(Report::new(value, text))
        }
        // From a newer gate: shown as it is.
        Err(_) => Ok(Report::details(value)),
    }
}

impl List {
    async fn run(self, client: &Client) -> Result<Report, Failure> {
        let query = |limit, cursor| {
            Ok(ApprovalQuery {
                status: typed_option("status", self.status.as_ref())?,
                agent_id: typed_option("agent_id", self.agent.as_ref())?,
                tool: typed_option("tool", self.tool.as_ref())?,
                limit,
                cursor,
            })
        };
        let columns = [
            ("ID", "id"),
            ("STATUS", "status"),
            ("AGENT", "agent_id"),
            ("TOOL", "tool"),
            ("RISK", "risk.level"),
            ("EXPIRES", "expires_at"),
            ("DESCRIPTION", "description"),
        ];
        let shown = Shown { name: "approvals", columns: &columns };
        let page = |page: ApprovalPage| (page.approvals, page.next_cursor);
        self.paging.fetch::<ListApprovals, _>(client, None, query, page, shown).await
    }
}
