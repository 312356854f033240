//! `toolgate coordinator`: coordinators of intents and their guardrails.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use toolgate_api::work::coordinators::{
    BeatCoordinator, CoordinatorChanges, CoordinatorRequest, CreateCoordinator, EndCoordinator, ListCoordinators,
    ShowCoordinator, UpdateCoordinator,
};
use toolgate_model::work::CoordinatorStatus;

use super::values::{parse_member, read_object, typed, typed_option};
use super::{Connection, Failure, typos};
use crate::client::Client;
use crate::output::{Report, table_of};

/// Let agents coordinate intents, within guardrails
#[derive(Args)]
pub(crate) struct Coordinator {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Make an agent the coordinator of an intent; you are its supervisor
    #[command(
        after_help = "Example:\n  toolgate coordinator create lead-agent INTENT --guardrail auto_delegate=true \\\n    --guardrail max_tool_invocations=500 --guardrail 'allowed_services=[\"stripe\"]'"
    )]
    Create {
        /// Agent id
        agent: String,
        /// Intent id
        intent: String,
        /// Principal that supervises it [default: you]
        #[arg(long, value_name = "ID")]
        supervisor: Option<String>,
        #[command(flatten)]
        guardrails: GuardrailTerms,
        /// Seconds between heartbeats [default: 60]
        #[arg(long, value_name = "SECONDS")]
        heartbeat: Option<u32>,
    },
    /// List the coordinators of an intent
    #[command(after_help = "Example:\n  toolgate coordinator list intent_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    List {
        /// Intent id
        intent: String,
    },
    /// Show a coordinator with its guardrails
    #[command(after_help = "Example:\n  toolgate coordinator show coord_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Coordinator id
        id: String,
    },
    /// Replace the guardrails of a coordinator
    #[command(
        after_help = "Example:\n  toolgate coordinator guardrails coord_01ARZ3NDEKTSV4RRFFQ69G5FAV --guardrail max_tool_cost_usd=25"
    )]
    Guardrails {
        /// Coordinator id
        id: String,
        #[command(flatten)]
        guardrails: GuardrailTerms,
    },
    /// Pause a coordinator: it cannot change plans and tasks
    #[command(after_help = "Example:\n  toolgate coordinator pause coord_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Pause {
        /// Coordinator id
        id: String,
    },
    /// Resume a coordinator
    #[command(after_help = "Example:\n  toolgate coordinator resume coord_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Resume {
        /// Coordinator id
        id: String,
    },
    /// Send a coordinator heartbeat
    #[command(after_help = "Example:\n  toolgate coordinator heartbeat coord_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Heartbeat {
        /// Coordinator id
        id: String,
    },
    /// End a coordinator
    #[command(after_help = "Example:\n  toolgate coordinator end coord_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    End {
        /// Coordinator id
        id: String,
    },
}

#[derive(Args)]
pub(crate) struct GuardrailTerms {
    /// Guardrail; may be repeated
    #[arg(long = "guardrail", value_name = "NAME=JSON", value_parser = parse_member)]
    members: Vec<(String, Value)>,
    /// File with guardrails as a JSON object, or - for standard input
    #[arg(long = "guardrails", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl GuardrailTerms {
    fn read(self) -> Result<Map<String, Value>, Failure> {
        let mut guardrails = self.file.as_ref().map(read_object).transpose()?.unwrap_or_default();
        for (name, value) in self.members {
            if guardrails.insert(name.clone(), value).is_some() {
                return Err(Failure::Usage(format!("the guardrail `{name}` is given twice")));
            }
        }
        Ok(guardrails)
    }
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { agent, intent, supervisor, guardrails, heartbeat } => {
                let body = CoordinatorRequest {
                    agent_id: typed("agent_id", &agent)?,
                    intent_id: intent,
                    role: None,
                    scope: None,
                    supervisor_id: typed_option("supervisor_id", supervisor)?,
                    coordinator_type: None,
                    guardrails: Some(guardrails.read()?),
                    heartbeat_interval_seconds: heartbeat,
                    expires_at: None,
                    metadata: None,
                };
                let coordinator = client.to::<CreateCoordinator>().body(&body).send().await?;
                typos::warn_of_agent(&client, &agent).await;
                let text = format!(
                    "{} coordinates {} as {}, supervised by {}.",
                    coordinator.agent_id, coordinator.intent_id, coordinator.id, coordinator.supervisor_id
                );
                Ok(Report::new(coordinator, text))
            }
            Self::List { intent } => {
                let coordinators = client.to::<ListCoordinators>().named(&intent).send().await?;
                let columns = [
                    ("ID", "id"),
                    ("AGENT", "agent_id"),
                    ("STATUS", "status"),
                    ("SUPERVISOR", "supervisor_id"),
                    ("LAST HEARTBEAT", "last_heartbeat"),
                ];
                let text = table_of(&coordinators, &columns);
                Ok(Report::new(coordinators, text))
            }
            Self::Show { id } => Ok(Report::details(client.to::<ShowCoordinator>().named(&id).send().await?)),
            Self::Guardrails { id, guardrails } => {
                let body = CoordinatorChanges { guardrails: Some(guardrails.read()?), ..CoordinatorChanges::default() };
                change(&client, &id, &body).await
            }
            Self::Pause { id } => set_status(&client, &id, CoordinatorStatus::Paused).await,
            Self::Resume { id } => set_status(&client, &id, CoordinatorStatus::Active).await,
            Self::Heartbeat { id } => {
                let coordinator = client.to::<BeatCoordinator>().named(&id).send().await?;
                let text = format!("{} is {}.", coordinator.id, coordinator.status);
                Ok(Report::new(coordinator, text))
            }
            Self::End { id } => {
                let coordinator = client.to::<EndCoordinator>().named(&id).send().await?;
                let text = format!("{} has ended.", coordinator.id);
                Ok(Report::new(coordinator, text))
            }
        }
    }
}

async fn set_status(client: &Client, id: &str, status: CoordinatorStatus) -> Result<Report, Failure> {
    change(client, id, &CoordinatorChanges { status: Some(status), ..CoordinatorChanges::default() }).await
}

async fn change(client: &Client, id: &str, changes: &CoordinatorChanges) -> Result<Report, Failure> {
    let version = client.to::<ShowCoordinator>().named(id).send().await?.version;
    let coordinator = client.to::<UpdateCoordinator>().named(id).version(version).body(changes).send().await?;
    let guardrails = Value::Object(coordinator.guardrails.clone());
    let text = format!("{} is {}; guardrails: {guardrails}", coordinator.id, coordinator.status);
    Ok(Report::new(coordinator, text))
}
