//! `toolgate plan`: which tasks carry out an intent.

use clap::{Args, Subcommand};
use toolgate_api::work::plans::{CreatePlan, EstimatePlan, ListPlans, PlanChanges, PlanRequest, ShowPlan, UpdatePlan};

use super::values::{typed, typed_option};
use super::{Connection, Failure};
use crate::output::{Report, table_of};

/// Create plans, and estimate what they cost
#[derive(Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Create a plan from tasks of an intent
    #[command(after_help = "Example:\n  toolgate plan create INTENT --task TASK_1 --task TASK_2")]
    Create {
        /// Intent id
        intent: String,
        /// Id of a task; may be repeated
        #[arg(long = "task", value_name = "ID")]
        tasks: Vec<String>,
        /// Action when a task fails: pause_and_escalate, notify, fail or retry
        #[arg(long, value_name = "ACTION")]
        on_failure: Option<String>,
    },
    /// List the plans of an intent
    #[command(after_help = "Example:\n  toolgate plan list intent_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    List {
        /// Intent id
        intent: String,
    },
    /// Show a plan
    #[command(after_help = "Example:\n  toolgate plan show plan_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Plan id
        id: String,
    },
    /// Change the state of a plan
    #[command(after_help = "Example:\n  toolgate plan status plan_01ARZ3NDEKTSV4RRFFQ69G5FAV active")]
    Status {
        /// Plan id
        id: String,
        /// State: active, paused, completed, failed or cancelled
        state: String,
    },
    /// Estimate the cost of a plan before it runs
    #[command(after_help = "Example:\n  toolgate plan estimate plan_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Estimate {
        /// Plan id
        id: String,
    },
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { intent, tasks, on_failure } => {
                let body = PlanRequest {
                    intent_id: intent,
                    tasks,
                    state: None,
                    on_failure: typed_option("on_failure", on_failure)?,
                    on_complete: None,
                    metadata: None,
                };
                let plan = client.to::<CreatePlan>().body(&body).send().await?;
                let text = format!("Plan {} created with {} tasks; it is {}.", plan.id, plan.tasks.len(), plan.state);
                Ok(Report::new(plan, text))
            }
            Self::List { intent } => {
                let plans = client.to::<ListPlans>().named(&intent).send().await?;
                let columns = [("ID", "id"), ("STATE", "state"), ("TASKS", "tasks"), ("CREATED", "created_at")];
                let text = table_of(&plans, &columns);
                Ok(Report::new(plans, text))
            }
            Self::Show { id } => Ok(Report::details(client.to::<ShowPlan>().named(&id).send().await?)),
            Self::Status { id, state } => {
                let version = client.to::<ShowPlan>().named(&id).send().await?.version;
                let body = PlanChanges { state: Some(typed("state", state)?), ..PlanChanges::default() };
                let plan = client.to::<UpdatePlan>().named(&id).version(version).body(&body).send().await?;
                let text = format!("{} is {}.", plan.id, plan.state);
                Ok(Report::new(plan, text))
            }
            Self::Estimate { id } => {
                let estimate = client.to::<EstimatePlan>().named(&id).send().await?;
                let columns = [("TASK", "task_id"), ("FROM", "min_usd"), ("TO", "max_usd"), ("UNKNOWN", "unknown")];
                let list = table_of(&estimate.tasks, &columns);
                let note = if estimate.complete { "" } else { ", without the tools whose cost is unknown" };
                let total = format!("Total: from {} to {} USD{note}", estimate.min_usd, estimate.max_usd);
                let text = format!("{}\n\n{total}", list.trim_end());
                Ok(Report::new(estimate, text))
            }
        }
    }
}
