//! `toolgate task`: tasks, and what becomes of them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use toolgate_api::parameters::Limit;
use toolgate_api::work::tasks::{
    CheckTask, ClaimTask, CreateTask, ListTasks, ShowTask, Task as ShownTask, TaskChanges, TaskCheckRequest, TaskQuery,
    UpdateTask,
};
use toolgate_model::work::TaskStatus;

use self::requirements::missing;
use self::terms::Terms;
use super::values::{read_object, typed, typed_option};
use super::{Connection, Failure, typos};
use crate::client::Client;
use crate::output::{Report, table_of};

mod requirements;
mod terms;

/// Create, assign, claim and complete tasks
#[derive(Args)]
pub(crate) struct Task {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Create a task
    #[command(
        after_help = "Example:\n  toolgate task create INTENT process-billing --requires stripe:charges.read,charges.create \\\n    --after TASK --timeout 30m"
    )]
    Create {
        /// Intent id
        intent: String,
        /// Name of the task
        name: String,
        #[command(flatten)]
        terms: Box<Terms>,
    },
    /// List the tasks of an intent
    #[command(after_help = "Example:\n  toolgate task list intent_01ARZ3NDEKTSV4RRFFQ69G5FAV --status ready")]
    List {
        /// Intent id
        intent: String,
        /// Only tasks with this status
        #[arg(long)]
        status: Option<String>,
        /// Maximum number of entries
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Show a task
    #[command(after_help = "Example:\n  toolgate task show task_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Task id
        id: String,
    },
    /// Check whether an agent has the tools to claim a task
    #[command(after_help = "Example:\n  toolgate task check task_01ARZ3NDEKTSV4RRFFQ69G5FAV --agent billing-agent")]
    Check {
        /// Task id
        id: String,
        /// Agent id [default: you]
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Assign a task to an agent, or unassign it
    #[command(after_help = "Example:\n  toolgate task assign task_01ARZ3NDEKTSV4RRFFQ69G5FAV billing-agent")]
    Assign {
        /// Task id
        id: String,
        /// Agent id
        #[arg(required_unless_present = "unassign", conflicts_with = "unassign")]
        agent: Option<String>,
        /// Unassign the task from its agent
        #[arg(long)]
        unassign: bool,
    },
    /// Claim a task
    #[command(after_help = "Example:\n  toolgate task claim task_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Claim {
        /// Task id
        id: String,
    },
    /// Start a claimed task, or continue a blocked one
    #[command(after_help = "Example:\n  toolgate task start task_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Start {
        /// Task id
        id: String,
    },
    /// Block a running task
    #[command(
        after_help = "Example:\n  toolgate task block task_01ARZ3NDEKTSV4RRFFQ69G5FAV --reason 'waits for a file'"
    )]
    Block {
        /// Task id
        id: String,
        /// What the task waits for
        #[arg(long)]
        reason: Option<String>,
    },
    /// Complete a task; grants that are bound to it are revoked
    #[command(after_help = "Example:\n  toolgate task complete task_01ARZ3NDEKTSV4RRFFQ69G5FAV --output result.json")]
    Complete {
        /// Task id
        id: String,
        /// File with its output as a JSON object, or - for standard input
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// End a task as failed; grants that are bound to it are revoked
    #[command(after_help = "Example:\n  toolgate task fail task_01ARZ3NDEKTSV4RRFFQ69G5FAV --error 'no such customer'")]
    Fail {
        /// Task id
        id: String,
        /// Reason of the failure
        #[arg(long)]
        error: Option<String>,
    },
    /// Release a claimed task, or retry a failed one
    #[command(after_help = "Example:\n  toolgate task ready task_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Ready {
        /// Task id
        id: String,
    },
    /// Cancel a task; grants that are bound to it are revoked
    #[command(after_help = "Example:\n  toolgate task cancel task_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Cancel {
        /// Task id
        id: String,
    },
    /// Skip a task; what depends on it can begin
    #[command(after_help = "Example:\n  toolgate task skip task_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Skip {
        /// Task id
        id: String,
    },
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { intent, name, terms } => {
                let body = terms.read(intent, &name)?;
                let task = client.to::<CreateTask>().body(&body).send().await?;
                let text = format!("Task {} created; it is {}.", task.id, task.status);
                Ok(Report::new(task, text))
            }
            Self::List { intent, status, limit } => {
                let query = TaskQuery {
                    status: typed_option("status", status)?,
                    limit: Some(Limit(limit)),
                    ..TaskQuery::default()
                };
                let tasks = client.to::<ListTasks>().named(&intent).query(&query).send().await?;
                let columns = [("ID", "id"), ("NAME", "name"), ("STATUS", "status"), ("AGENT", "assigned_agent")];
                let text = table_of(&tasks, &columns);
                Ok(Report::new(tasks, text))
            }
            Self::Show { id } => Ok(Report::details(client.to::<ShowTask>().named(&id).send().await?)),
            Self::Check { id, agent } => {
                let body = TaskCheckRequest { agent_id: typed_option("agent_id", agent)? };
                let check = client.to::<CheckTask>().named(&id).body(&body).send().await?;
                let (refused, text) = (!check.allowed, requirements::verdict(&check));
                Ok(Report::new(check, text).refused_if(refused))
            }
            Self::Assign { id, agent, unassign: _ } => {
                let assignee = agent.as_ref().map(|agent| typed("assigned_agent", agent)).transpose()?;
                let changes = TaskChanges { assigned_agent: Some(assignee), ..TaskChanges::default() };
                let task = change(&client, &id, &changes).await?;
                if let Some(agent) = &agent {
                    typos::warn_of_agent(&client, agent).await;
                }
                let text = match &task.assigned_agent {
                    Some(agent) => format!("{} is assigned to {agent}.", task.id),
                    None => format!("{} is unassigned.", task.id),
                };
                Ok(Report::new(task, text))
            }
            Self::Claim { id } => {
                let task = client.to::<ClaimTask>().named(&id).send().await?;
                let text = format!("{} is {}.{}", task.id, task.status, missing(&task.optional_missing));
                Ok(Report::new(task, text))
            }
            Self::Start { id } => become_status(&client, &id, TaskStatus::Running, TaskChanges::default()).await,
            Self::Block { id, reason } => {
                let blocked_reason = typed_option("blocked_reason", reason)?;
                let changes = TaskChanges { blocked_reason, ..TaskChanges::default() };
                become_status(&client, &id, TaskStatus::Blocked, changes).await
            }
            Self::Complete { id, output } => {
                let output = output.as_ref().map(read_object).transpose()?;
                let changes = TaskChanges { output, ..TaskChanges::default() };
                become_status(&client, &id, TaskStatus::Completed, changes).await
            }
            Self::Fail { id, error } => {
                let changes = TaskChanges { error: typed_option("error", error)?, ..TaskChanges::default() };
                become_status(&client, &id, TaskStatus::Failed, changes).await
            }
            Self::Ready { id } => become_status(&client, &id, TaskStatus::Ready, TaskChanges::default()).await,
            Self::Cancel { id } => become_status(&client, &id, TaskStatus::Cancelled, TaskChanges::default()).await,
            Self::Skip { id } => become_status(&client, &id, TaskStatus::Skipped, TaskChanges::default()).await,
        }
    }
}

async fn become_status(client: &Client, id: &str, status: TaskStatus, changes: TaskChanges) -> Result<Report, Failure> {
    let task = change(client, id, &TaskChanges { status: Some(status), ..changes }).await?;
    let text = format!("{} is {}.", task.id, task.status);
    Ok(Report::new(task, text))
}

async fn change(client: &Client, id: &str, changes: &TaskChanges) -> Result<ShownTask, Failure> {
    let version = client.to::<ShowTask>().named(id).send().await?.version;
    Ok(client.to::<UpdateTask>().named(id).version(version).body(changes).send().await?)
}
