//! `toolgate budget`.

use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_api::agents::{AgentChanges, UpdateAgent};
use toolgate_api::spending::{BudgetPage, BudgetQuery, ListBudgets};
use toolgate_api::tenants::{TenantChanges, UpdateTenant};
use toolgate_model::spending::Budget as ModelBudget;

use super::paging::{Paging, Shown};
use super::values::{typed, typed_option};
use super::{Connection, Failure};
use crate::output::{Report, clean, table_of};

const COLUMNS: [(&str, &str); 9] = [
    ("ACCOUNT", "account"),
    ("ID", "account_id"),
    ("PERIOD", "period"),
    ("CALLS", "used_calls"),
    ("OF", "limit_calls"),
    ("COST USD", "used_cost_usd"),
    ("OF USD", "limit_cost_usd"),
    ("LEFT", "remaining_calls"),
    ("LEFT USD", "remaining_cost_usd"),
];

/// Set budgets of agents and of the tenant, and show what is left of them
#[derive(Args)]
pub(crate) struct Budget {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// List budgets with what was used and what remains
    #[command(after_help = "Example:\n  toolgate budget list --json")]
    List(Paging),
    /// Show the budget of one agent
    #[command(after_help = "Example:\n  toolgate budget show billing-agent")]
    Show {
        /// Agent id
        agent: String,
    },
    /// Set the budget of an agent or of a tenant; it replaces the budget that it has
    #[command(
        after_help = "Examples:\n  toolgate budget set --agent billing-agent --calls-per-day 1000 --cost-per-day 5\n  toolgate budget set --tenant default --cost-total 100 --warn-at 90"
    )]
    Set {
        #[command(flatten)]
        owner: Owner,
        #[command(flatten)]
        limits: Limits,
    },
    /// Remove the budget of an agent or of a tenant
    #[command(after_help = "Example:\n  toolgate budget clear --agent billing-agent")]
    Clear {
        #[command(flatten)]
        owner: Owner,
    },
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Owner {
    /// Id of the agent whose budget it is
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Id of the tenant whose budget it is
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
}

#[derive(Args)]
pub(crate) struct Limits {
    /// Calls in a day, in UTC
    #[arg(long, value_name = "N")]
    calls_per_day: Option<u64>,
    /// US dollars in a day, in UTC
    #[arg(long, value_name = "USD")]
    cost_per_day: Option<f64>,
    /// Calls in total, from now on
    #[arg(long, value_name = "N")]
    calls_total: Option<u64>,
    /// US dollars in total, from now on
    #[arg(long, value_name = "USD")]
    cost_total: Option<f64>,
    /// Share of a limit at which a warning is recorded, in percent [default: 80]
    #[arg(long, value_name = "PERCENT")]
    warn_at: Option<u8>,
}

impl Limits {
    fn budget(self) -> Result<ModelBudget, Failure> {
        let members = [
            ("calls_per_day", self.calls_per_day.map(|calls| json!(calls))),
            ("cost_per_day_usd", self.cost_per_day.map(|cost| json!(cost))),
            ("calls_total", self.calls_total.map(|calls| json!(calls))),
            ("cost_total_usd", self.cost_total.map(|cost| json!(cost))),
            ("warn_at_percent", self.warn_at.map(|percent| json!(percent))),
        ];
        let given: serde_json::Map<_, _> =
            members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        typed("budget", given)
    }
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::List(paging) => {
                let shown = Shown { name: "budgets", columns: &COLUMNS };
                let query = |limit, cursor| Ok(BudgetQuery { agent_id: None, limit, cursor });
                let page = |page: BudgetPage| (page.budgets, page.next_cursor);
                paging.fetch::<ListBudgets, _>(&client, None, query, page, shown).await
            }
            Self::Show { agent } => {
                let query = BudgetQuery { agent_id: typed_option("agent_id", Some(agent))?, ..BudgetQuery::default() };
                let page = client.to::<ListBudgets>().query(&query).send().await?;
                let text = table_of(&page.budgets, &COLUMNS);
                Ok(Report::new(page, text))
            }
            Self::Set { owner, limits } => {
                let budget = limits.budget()?;
                owner.change(&client, Some(budget)).await
            }
            Self::Clear { owner } => owner.change(&client, None).await,
        }
    }
}

impl Owner {
    async fn change(self, client: &crate::client::Client, budget: Option<ModelBudget>) -> Result<Report, Failure> {
        let done = if budget.is_some() { "set" } else { "removed" };
        if let Some(agent) = self.agent {
            let changes = AgentChanges { budget: Some(budget), ..AgentChanges::default() };
            let stored = client.to::<UpdateAgent>().named(&agent).body(&changes).send().await?;
            return Ok(Report::new(stored, format!("Budget of agent {} {done}.\n", clean(&agent))));
        }
        let tenant = self.tenant.unwrap_or_default();
        let stored = client.to::<UpdateTenant>().named(&tenant).body(&TenantChanges { budget }).send().await?;
        Ok(Report::new(stored, format!("Budget of tenant {} {done}.\n", clean(&tenant))))
    }
}
