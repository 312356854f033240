//! `toolgate intent`: intents, their state and the agents that work on them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use toolgate_api::reading::Object;
use toolgate_api::work::costs::ListCosts;
use toolgate_api::work::events::{IntentEventList, IntentEventQuery, ListIntentEvents};
use toolgate_api::work::intents::{
    AssignIntentAgent, CreateIntent, IntentAgentRequest, IntentList, IntentQuery, IntentRequest, ListIntentAgents,
    ListIntents, PatchOperation, PatchState, SetIntentStatus, ShowIntent, StatePatch, StateRequest, StatusRequest,
    UnassignIntentAgent,
};
use toolgate_api::work::leases::ListLeases;

use super::paging::{Paging, Shown};
use super::values::{parse_member, read_object, typed, typed_option};
use super::{Connection, Failure, typos};
use crate::client::Client;
use crate::output::{Report, table_of};

/// Create intents, and show their events and costs
#[derive(Args)]
pub(crate) struct Intent {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Create an intent
    #[command(after_help = "Example:\n  toolgate intent create 'Quarterly compliance' --set phase='\"start\"'")]
    Create {
        /// Title of the intent
        title: String,
        /// What the intent is to achieve
        #[arg(long)]
        description: Option<String>,
        /// Member of its state; may be repeated
        #[arg(long = "set", value_name = "NAME=JSON", value_parser = parse_member)]
        members: Vec<(String, Value)>,
        /// File with its state as a JSON object, or - for standard input
        #[arg(long, value_name = "FILE")]
        state: Option<PathBuf>,
    },
    /// List intents
    #[command(after_help = "Example:\n  toolgate intent list --status active")]
    List {
        /// Only intents with this status
        #[arg(long)]
        status: Option<String>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show an intent with its state
    #[command(after_help = "Example:\n  toolgate intent show intent_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Intent id
        id: String,
    },
    /// Change the status of an intent
    #[command(after_help = "Example:\n  toolgate intent status intent_01ARZ3NDEKTSV4RRFFQ69G5FAV active")]
    Status {
        /// Intent id
        id: String,
        /// Status: draft, active, blocked, suspended_awaiting_input, completed or abandoned
        status: String,
        /// Reason, for the events of the intent
        #[arg(long)]
        reason: Option<String>,
    },
    /// Change the state of an intent
    #[command(
        after_help = "Example:\n  toolgate intent state intent_01ARZ3NDEKTSV4RRFFQ69G5FAV --set progress=0.5 --remove draft"
    )]
    State {
        /// Intent id
        id: String,
        /// Member to set; may be repeated
        #[arg(long = "set", value_name = "NAME=JSON", value_parser = parse_member)]
        members: Vec<(String, Value)>,
        /// Member to remove; may be repeated
        #[arg(long = "remove", value_name = "NAME")]
        removed: Vec<String>,
    },
    /// List the agents of an intent
    #[command(after_help = "Example:\n  toolgate intent agents intent_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Agents {
        /// Intent id
        id: String,
    },
    /// Assign an agent to an intent, so that it can see it
    #[command(after_help = "Example:\n  toolgate intent assign intent_01ARZ3NDEKTSV4RRFFQ69G5FAV billing-agent")]
    Assign {
        /// Intent id
        id: String,
        /// Agent id
        agent: String,
        /// Role of the coordinator, for agents to read
        #[arg(long)]
        role: Option<String>,
    },
    /// Remove an agent from an intent
    #[command(after_help = "Example:\n  toolgate intent unassign intent_01ARZ3NDEKTSV4RRFFQ69G5FAV billing-agent")]
    Unassign {
        /// Intent id
        id: String,
        /// Agent id
        agent: String,
    },
    /// List the events of an intent
    #[command(
        after_help = "Example:\n  toolgate intent events intent_01ARZ3NDEKTSV4RRFFQ69G5FAV --type task.completed"
    )]
    Events {
        /// Intent id
        id: String,
        /// Only events of this type
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        #[command(flatten)]
        paging: Paging,
    },
    /// List the leases of an intent
    #[command(after_help = "Example:\n  toolgate intent leases intent_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Leases {
        /// Intent id
        id: String,
    },
    /// Show what an intent has cost
    #[command(after_help = "Example:\n  toolgate intent costs intent_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Costs {
        /// Intent id
        id: String,
    },
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { title, description, members, state } => {
                let mut document = state.as_ref().map(read_object).transpose()?.unwrap_or_default();
                document.extend(members);
                let mut body = IntentRequest::new(typed("title", title)?);
                body.description = typed_option("description", description)?;
                body.state = Some(document).filter(|document| !document.is_empty());
                let intent = client.to::<CreateIntent>().body(&body).send().await?;
                let text = format!("Intent {} created; it is {}.", intent.id, intent.status);
                Ok(Report::new(intent, text))
            }
            Self::List { status, paging } => {
                let query = |limit, cursor| {
                    let status = typed_option("status", status.as_ref())?;
                    Ok(IntentQuery { status, limit, cursor, ..IntentQuery::default() })
                };
                let columns = [
                    ("ID", "id"),
                    ("TITLE", "title"),
                    ("STATUS", "status"),
                    ("CREATED BY", "created_by"),
                    ("UPDATED", "updated_at"),
                ];
                let page = |page: IntentList| (page.intents, page.next_cursor);
                let shown = Shown { name: "intents", columns: &columns };
                paging.fetch::<ListIntents, _>(&client, None, query, page, shown).await
            }
            Self::Show { id } => Ok(Report::details(client.to::<ShowIntent>().named(&id).send().await?)),
            Self::Status { id, status, reason } => {
                let version = client.to::<ShowIntent>().named(&id).send().await?.version;
                let body = StatusRequest { status: typed("status", status)?, reason: typed_option("reason", reason)? };
                let intent = client.to::<SetIntentStatus>().named(&id).version(version).body(&body).send().await?;
                let text = format!("{} is {}.", intent.id, intent.status);
                Ok(Report::new(intent, text))
            }
            Self::State { id, members, removed } => patch(&client, &id, members, removed).await,
            Self::Agents { id } => {
                let found = client.to::<ListIntentAgents>().named(&id).send().await?;
                let columns = [("AGENT", "agent_id"), ("ROLE", "role"), ("ASSIGNED", "assigned_at")];
                let text = table_of(&found.agents, &columns);
                Ok(Report::new(found, text))
            }
            Self::Assign { id, agent, role } => {
                let body =
                    IntentAgentRequest { agent_id: typed("agent_id", &agent)?, role: typed_option("role", role)? };
                let assigned = client.to::<AssignIntentAgent>().named(&id).body(&body).send().await?;
                typos::warn_of_agent(&client, &agent).await;
                let text = format!("{} is assigned to {}.", assigned.agent_id, assigned.intent_id);
                Ok(Report::new(assigned, text))
            }
            Self::Unassign { id, agent } => {
                let removed = client.to::<UnassignIntentAgent>().named(&id).named(&agent).send().await?;
                let text = format!("{} is no longer assigned to {}.", removed.agent_id, removed.intent_id);
                Ok(Report::new(removed, text))
            }
            Self::Events { id, kind, paging } => {
                let query = |limit, cursor| {
                    let event_type = typed_option("event_type", kind.as_ref())?;
                    Ok(IntentEventQuery { event_type, limit, cursor, ..IntentEventQuery::default() })
                };
                let columns = [("TIME", "created_at"), ("TYPE", "event_type"), ("ACTOR", "actor"), ("ID", "id")];
                let page = |page: IntentEventList| (page.events, page.next_cursor);
                let shown = Shown { name: "events", columns: &columns };
                paging.fetch::<ListIntentEvents, _>(&client, Some(&id), query, page, shown).await
            }
            Self::Leases { id } => {
                let found = client.to::<ListLeases>().named(&id).send().await?;
                let columns = [("ID", "id"), ("SCOPE", "scope"), ("AGENT", "agent_id"), ("EXPIRES", "expires_at")];
                let text = table_of(&found.leases, &columns);
                Ok(Report::new(found, text))
            }
            Self::Costs { id } => {
                let found = client.to::<ListCosts>().named(&id).send().await?;
                let columns = [
                    ("TIME", "recorded_at"),
                    ("AGENT", "agent_id"),
                    ("TYPE", "cost_type"),
                    ("TOOL", "tool"),
                    ("AMOUNT", "amount"),
                    ("UNIT", "unit"),
                    ("USD", "amount_usd"),
                ];
                let list = table_of(&found.costs, &columns);
                let text = format!("{}\n\nTotal: {} USD", list.trim_end(), found.summary.total_usd);
                Ok(Report::new(found, text))
            }
        }
    }
}

async fn patch(
    client: &Client,
    id: &str,
    members: Vec<(String, Value)>,
    removed: Vec<String>,
) -> Result<Report, Failure> {
    let set = members.into_iter().map(|(path, value)| StatePatch { op: PatchOperation::Set, path, value });
    let remove = removed.into_iter().map(|path| StatePatch { op: PatchOperation::Remove, path, value: Value::Null });
    let patches: Vec<Object<StatePatch>> = set.chain(remove).map(Object).collect();
    if patches.is_empty() {
        return Err(Failure::Usage("give at least one --set or --remove".to_owned()));
    }
    let version = client.to::<ShowIntent>().named(id).send().await?.version;
    let body = StateRequest { patches: Some(patches), state: None };
    let intent = client.to::<PatchState>().named(id).version(version).body(&body).send().await?;
    let state: Map<String, Value> = intent.state.clone();
    let text = crate::output::details(&Value::Object(state));
    Ok(Report::new(intent, text))
}
