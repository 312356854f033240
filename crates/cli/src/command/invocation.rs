//! `toolgate invocation`: records of calls, and detached calls.

use clap::{Args, Subcommand};
use toolgate_api::detached::{CancelCall, DeleteResult, DetachedPage, DetachedQuery, ListDetachedCalls};
use toolgate_api::invocations::{InvocationPage, InvocationQuery, ListInvocations, ShowInvocation};

use super::paging::{Paging, Shown};
use super::typos;
use super::values::{Since, typed_option};
use super::{Connection, Failure, tool};
use crate::client::{Client, Outcome};
use crate::output::Report;

/// Show records of calls, and manage detached calls
#[derive(Args)]
pub(crate) struct Invocation {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// List calls, newest first
    #[command(after_help = "Example:\n  toolgate invocation list --agent billing --status denied")]
    List(Box<List>),
    /// Show the record of a call
    #[command(after_help = "Example:\n  toolgate invocation show inv_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Id of the call
        id: String,
    },
    /// Fetch the result of a detached call; waits until the call has ended
    ///
    /// Prints only the result on standard output.
    #[command(after_help = "Example:\n  toolgate invocation result inv_01ARZ3NDEKTSV4RRFFQ69G5FAV | jq .id")]
    Result {
        /// Id of the call
        id: String,
        /// Delete the stored result instead
        #[arg(long)]
        delete: bool,
    },
    /// Cancel a detached call that has not been admitted
    #[command(after_help = "Example:\n  toolgate invocation cancel inv_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Cancel {
        /// Id of the call
        id: String,
    },
    /// List detached calls that wait, run or have a stored result
    #[command(after_help = "Example:\n  toolgate invocation detached --agent billing")]
    Detached {
        /// Only calls of this agent
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        #[command(flatten)]
        paging: Paging,
    },
}

#[derive(Args)]
pub(crate) struct List {
    /// Only calls of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Only calls with this grant
    #[arg(long, value_name = "ID")]
    grant: Option<String>,
    /// Only calls of this service
    #[arg(long)]
    service: Option<String>,
    /// Only calls of this tool, without its service
    #[arg(long)]
    tool: Option<String>,
    /// Only calls with this status
    #[arg(long, value_parser = ["denied", "error", "running", "success", "unknown"])]
    status: Option<String>,
    /// Only calls of this intent
    #[arg(long, value_name = "ID")]
    intent: Option<String>,
    /// Only calls of this task
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Only the call with this idempotency key
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Only calls since this time, or since a duration ago, such as 7d or 12h
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    since: Option<Since>,
    /// Only calls before this time, or before a duration ago
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    until: Option<Since>,
    #[command(flatten)]
    paging: Paging,
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::List(list) => list.run(&client).await,
            Self::Show { id } => Ok(Report::details(client.to::<ShowInvocation>().named(&id).send().await?)),
            Self::Result { id, delete: true } => {
                let deleted = client.to::<DeleteResult>().named(&id).send().await?;
                Ok(Report::new(deleted, format!("Result of {id} deleted.\n")))
            }
            Self::Result { id, delete: false } => tool::result_of(&client, &id).await,
            Self::Cancel { id } => {
                let text = format!("{id} cancelled; nothing was executed.\n");
                Ok(match client.to::<CancelCall>().named(&id).begin().await? {
                    Outcome::Completed(cancelled) => Report::new(cancelled, text),
                    Outcome::Detached(call) => Report::new(call, text),
                })
            }
            Self::Detached { agent, paging } => {
                let columns = [
                    ("ID", "id"),
                    ("TIME", "timestamp"),
                    ("AGENT", "agent_id"),
                    ("TOOL", "tool_name"),
                    ("STATUS", "status"),
                    ("APPROVALS", "approval_ids"),
                ];
                let query = |limit, cursor| {
                    Ok(DetachedQuery { agent_id: typed_option("agent_id", agent.as_ref())?, limit, cursor })
                };
                let shown = Shown { name: "detached_calls", columns: &columns };
                let page = |page: DetachedPage| (page.detached_calls, page.next_cursor);
                paging.fetch::<ListDetachedCalls, _>(&client, None, query, page, shown).await
            }
        }
    }
}

impl List {
    async fn run(self, client: &Client) -> Result<Report, Failure> {
        let (since, until) = (self.since.map(Since::now), self.until.map(Since::now));
        let query = |limit, cursor| {
            Ok(InvocationQuery {
                agent_id: typed_option("agent_id", self.agent.as_ref())?,
                grant_id: self.grant.clone(),
                service: typed_option("service", self.service.as_ref())?,
                tool: typed_option("tool", self.tool.as_ref())?,
                status: typed_option("status", self.status.as_ref())?,
                intent_id: typed_option("intent_id", self.intent.as_ref())?,
                task_id: typed_option("task_id", self.task.as_ref())?,
                idempotency_key: typed_option("idempotency_key", self.idempotency_key.as_ref())?,
                since,
                until,
                limit,
                cursor,
            })
        };
        let columns = [
            ("ID", "id"),
            ("TIME", "timestamp"),
            ("AGENT", "agent_id"),
            ("SERVICE", "service"),
            ("TOOL", "tool"),
            ("STATUS", "status"),
            ("HTTP", "http_status"),
            ("MS", "duration_ms"),
            ("ERROR", "error.code"),
        ];
        let shown = Shown { name: "invocations", columns: &columns };
        let page = |page: InvocationPage| (page.invocations, page.next_cursor);
        let report = self.paging.fetch::<ListInvocations, _>(client, None, query, page, shown).await?;
        typos::warn_of_empty(client, &report, self.agent.as_deref(), self.service.as_deref()).await;
        Ok(report)
    }
}
