//! `toolgate approvals`: what waits for a person, and saying yes or no to it. Alone and at a terminal it is the live inbox.

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

/// How wide an approval is shown where no terminal says how wide it is.
const PAGE_WIDTH: usize = 100;

/// Answer calls that wait for a person, live or one by one
///
/// Without a command, at a terminal: a live inbox. Where there is no terminal: the list of what waits.
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
    /// Show one with everything that is known about it
    #[command(after_help = "Example:\n  toolgate approvals show appr_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Its id
        id: String,
    },
    /// Say yes or no to one
    #[command(
        after_help = "Example:\n  toolgate approvals decide appr_01ARZ3NDEKTSV4RRFFQ69G5FAV --approve\n  toolgate approvals decide appr_01ARZ3NDEKTSV4RRFFQ69G5FAV --approve --prefix 'cargo test' --scope session\n  toolgate approvals decide appr_01ARZ3NDEKTSV4RRFFQ69G5FAV --deny --reason 'use the staging database'"
    )]
    Decide(decide::Decide),
    /// Print a line for each thing that happens to approvals
    #[command(after_help = "Example:\n  toolgate approvals watch --json\n  toolgate approvals watch --once")]
    Watch(watch::Watch),
    /// List, explain and take back the answers that also cover later calls
    #[command(subcommand)]
    Standing(standing::Standing),
    /// Tell which command lines prefixes would cover, without any gate
    ///
    /// Reads lines of JSON, {"command": "...", "prefixes": ["cargo "]}, and prints for each, in order, a line
    /// {"approve": true or false, "why": "..."}. Nothing is run.
    #[command(
        after_help = "Example:\n  toolgate approvals match --stdin < lines.jsonl\n  echo '{\"command\": \"cargo build && cargo test\", \"prefixes\": [\"cargo \"]}' | toolgate approvals match --stdin"
    )]
    Match {
        /// Read the lines from standard input
        #[arg(long, required = true)]
        stdin: bool,
    },
}

/// Which approvals.
#[derive(Args)]
pub(crate) struct List {
    /// In this state
    #[arg(long, value_parser = ["pending", "approved", "denied", "timed_out", "cancelled", "orphaned"])]
    status: Option<String>,
    /// Of this agent's calls
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Of this tool
    #[arg(long, value_name = "SERVICE.TOOL")]
    tool: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

/// Does what was asked.
pub(crate) async fn run(connection: &Connection, action: Option<Action>) -> Result<Report, Failure> {
    match action {
        // This one needs no gate, and so no key.
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
        // A gate that is newer than this program: better everything as it is than nothing.
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
