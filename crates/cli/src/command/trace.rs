//! `toolgate trace`: an execution as a timeline with its decisions, and its replay.

use clap::{Args, Subcommand};
use http::StatusCode;
use serde_json::{Value, json};
use toolgate_api::approvals::ShowApproval;
use toolgate_api::audit::{EventQuery, ListEvents};
use toolgate_api::invocations::{ShowInvocation, ShownInvocation};
use toolgate_api::parameters::{Cursor, Limit};
use toolgate_api::policies::ReplayRun;
use toolgate_model::event::{EventPayload, StoredEvent};

use self::approval::Approvals;
use self::timeline::Timeline;
use super::values::typed;
use super::{Connection, Failure};
use crate::client::{Client, ClientError};
use crate::output::{Report, clean};

mod approval;
mod decision;
mod line;
mod replay;
mod timeline;

/// Events per page: few enough that even large ones fit into one response.
const PAGE: u32 = 200;
const APPROVE_STAGE: &str = "approve";

/// Show an execution as a timeline, with every decision
///
/// Events and approvals are listed below their call, each with the time since the first event.
#[derive(Args)]
#[command(
    subcommand_negates_reqs = true,
    after_help = "Example:\n  toolgate trace run-17\n  toolgate trace inv_01ARZ3NDEKTSV4RRFFQ69G5FAV --json\n  toolgate trace replay run-17"
)]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Run id, or the id of a call
    #[arg(required = true)]
    run: Option<String>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Re-evaluate an execution with the policy versions that it ran under; exit status 1 if a verdict differs
    #[command(after_help = "Example:\n  toolgate trace replay run-17")]
    Replay {
        /// Run id, or the id of a call
        run: String,
    },
}

impl Trace {
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        match (&self.run, &self.action) {
            (None, Some(Action::Replay { run })) => replayed(&self.connection.client()?, run).await,
            (Some(run), None) => traced(&self.connection.client()?, run).await,
            _ => Err(Failure::Usage("use `toolgate trace RUN` or `toolgate trace replay RUN`".to_owned())),
        }
    }
}

async fn traced(client: &Client, named: &str) -> Result<Report, Failure> {
    let mut found = events(client, named).await?;
    if let Some(run) = run_of_call(client, named).await? {
        // Events that are stored under the call itself concern its approvals.
        found.extend(of_call(events(client, &run).await?, named));
        found.sort_by_key(|event| event.sequence);
    }
    if found.is_empty() {
        let named = clean(named);
        let sentence = format!("the log has no events of `{named}`; list calls with `toolgate invocation list`");
        return Err(Failure::Said(sentence));
    }
    let approvals = approvals(client, &found).await?;
    let text = Timeline::of(&found, &approvals).draw();
    let events: Vec<Value> = found.into_iter().map(|event| event.whole).collect();
    let Approvals { shown, hidden } = approvals;
    let value = json!({"run_id": named, "events": events, "approvals": shown, "approvals_not_shown": hidden});
    Ok(Report::new(value, text))
}

/// The events of one call.
fn of_call(events: Vec<StoredEvent>, named: &str) -> Vec<StoredEvent> {
    let belongs: Vec<bool> = timeline::calls(&events).into_iter().map(|call| call.as_deref() == Some(named)).collect();
    events.into_iter().zip(belongs).filter_map(|(event, belongs)| belongs.then_some(event)).collect()
}

async fn approvals(client: &Client, found: &[StoredEvent]) -> Result<Approvals, Failure> {
    let mut ids = approval::named(found);
    for refused in found {
        // The refusal does not name the approval; events of approvals are stored under their call.
        match &refused.event.payload {
            EventPayload::ToolDenied(denied) if denied.stage == APPROVE_STAGE => {
                let of_call = approval::named(&events(client, &denied.invocation_id.to_string()).await?);
                ids.extend(of_call.into_iter().filter(|id| !ids.contains(id)).collect::<Vec<_>>());
            }
            _ => {}
        }
    }
    let mut approvals = Approvals::default();
    for id in ids {
        match client.to::<ShowApproval>().named(&id).send_as().await {
            Ok(approval) => approvals.shown.push(approval),
            Err(error) if is_unseen(&error) => approvals.hidden.push(id),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(approvals)
}

async fn replayed(client: &Client, named: &str) -> Result<Report, Failure> {
    match client.to::<ReplayRun>().named(named).send().await {
        Ok(replay) => Ok(replay::report(&replay)),
        Err(error) if is_missing(&error) => match run_of_call(client, named).await? {
            Some(run) => {
                let replay = client.to::<ReplayRun>().named(&run).send().await?;
                Ok(replay::report(&replay::of_call(replay, named)))
            }
            None => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// In the order of the log.
async fn events(client: &Client, run: &str) -> Result<Vec<StoredEvent>, Failure> {
    let mut events = Vec::new();
    let mut cursor = None;
    loop {
        let query = EventQuery {
            run_id: Some(typed("run_id", run)?),
            limit: Some(Limit(PAGE)),
            cursor: cursor.take().map(Cursor),
            ..EventQuery::default()
        };
        let page = client.to::<ListEvents>().query(&query).send().await?;
        for event in page.events {
            events.push(StoredEvent::from_shown(event)?);
        }
        cursor = page.next_cursor.0;
        if cursor.is_none() {
            return Ok(events);
        }
    }
}

/// The run of a call, if `named` is a call and its run has another id.
async fn run_of_call(client: &Client, named: &str) -> Result<Option<String>, Failure> {
    if !named.starts_with("inv_") {
        return Ok(None);
    }
    match client.to::<ShowInvocation>().named(named).send().await {
        Ok(ShownInvocation::Recorded(invocation)) => Ok(Some(invocation.run_id).filter(|run| run != named)),
        Ok(ShownInvocation::Detached(_)) => Ok(None),
        Err(error) if is_unseen(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_missing(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { status: StatusCode::NOT_FOUND, .. })
}

/// Whether an object is missing or not visible to the caller, which the gate does not always distinguish.
fn is_unseen(error: &ClientError) -> bool {
    is_missing(error) || matches!(error, ClientError::Refused { status: StatusCode::FORBIDDEN, .. })
}
