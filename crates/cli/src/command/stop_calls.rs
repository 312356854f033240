//! `toolgate stop` and `toolgate resume`.

use clap::Args;
use toolgate_api::spending::{ResumeCalls, StopCalls, StopRequest};

use super::values::typed_option;
use super::{Connection, Failure};
use crate::output::{Report, clean};

/// Stop the calls of an agent, of a tenant or of the whole gate
///
/// When it returns, no gate admits such a call any more. Waiting calls are cancelled, and in-flight
/// calls are terminated. Administration continues. `toolgate resume` undoes it.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  toolgate stop --agent billing-agent --reason 'it pays everything twice'\n  toolgate stop --all"
)]
pub(crate) struct StopCommand {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    scope: Scope,
}

/// Resume stopped calls
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate resume --agent billing-agent")]
pub(crate) struct ResumeCommand {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Args)]
struct Scope {
    #[command(flatten)]
    what: What,
    /// Reason, shown in refusals and in the log
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct What {
    /// The calls of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// All calls of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// All calls of all tenants
    #[arg(long)]
    all: bool,
}

impl Scope {
    fn request(&self) -> Result<(StopRequest, String), Failure> {
        let What { agent, tenant, all } = &self.what;
        let named = match (agent, tenant) {
            (Some(agent), _) => format!("Calls of agent {}", clean(agent)),
            (None, Some(tenant)) => format!("All calls of tenant {}", clean(tenant)),
            (None, None) => "All calls of the gate".to_owned(),
        };
        let request = StopRequest {
            agent: typed_option("agent", agent.as_ref())?,
            tenant: typed_option("tenant", tenant.as_ref())?,
            all: *all,
            reason: typed_option("reason", self.reason.as_ref())?,
        };
        Ok((request, named))
    }
}

impl StopCommand {
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        let client = self.connection.client()?;
        let (request, named) = self.scope.request()?;
        let stopped = client.to::<StopCalls>().body(&request).send().await?;
        let state = if stopped.changed { "are stopped" } else { "were stopped already" };
        let text = format!(
            "{named} {state}. Cancelled: {} approvals, {} detached calls. In flight: {}.\n",
            stopped.cancelled_approvals, stopped.cancelled_calls, stopped.in_flight
        );
        Ok(Report::new(stopped, text))
    }
}

impl ResumeCommand {
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        let client = self.connection.client()?;
        let (request, named) = self.scope.request()?;
        let resumed = client.to::<ResumeCalls>().body(&request).send().await?;
        let state = if resumed.changed { "are resumed" } else { "were not stopped" };
        Ok(Report::new(resumed, format!("{named} {state}.\n")))
    }
}
