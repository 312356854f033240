//! `toolgate trace`: an execution as a timeline with everything that was decided, and the same judged again.

use clap::{Args, Subcommand};
use http::StatusCode;
use serde_json::{Value, json};

use self::timeline::Timeline;
use super::{Connection, Failure};
use crate::client::{Client, ClientError, escaped, with_query};
use crate::output::{Report, at, clean};
use crate::siem::StoredEvent;

mod decision;
mod line;
mod replay;
mod timeline;

/// How many events are asked for at once: few enough that even long ones fit into one answer.
const PAGE: u32 = 200;

/// Show an execution as a timeline, with every decision
///
/// Events stand below the call that they belong to, each with the time since the first one.
#[derive(Args)]
#[command(
    subcommand_negates_reqs = true,
    after_help = "Example:\n  toolgate trace run-17\n  toolgate trace inv_01ARZ3NDEKTSV4RRFFQ69G5FAV --json\n  toolgate trace replay run-17"
)]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The execution, or one call of it
    #[arg(required = true)]
    run: Option<String>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Judge an execution again by the policies of then; exit status 1 where a verdict differs
    #[command(after_help = "Example:\n  toolgate trace replay run-17")]
    Replay {
        /// The execution, or one call of it
        run: String,
    },
}

impl Trace {
    /// Does what was asked.
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        match (&self.run, &self.action) {
            (None, Some(Action::Replay { run })) => replayed(&self.connection.client()?, run).await,
            (Some(run), None) => traced(&self.connection.client()?, run).await,
            _ => Err(Failure::Usage("write `toolgate trace RUN` or `toolgate trace replay RUN`".to_owned())),
        }
    }
}

async fn traced(client: &Client, named: &str) -> Result<Report, Failure> {
    let mut found = events(client, named).await?;
    if found.is_empty()
        && let Some(run) = run_of_call(client, named).await?
    {
        found = events(client, &run).await?;
        found.retain(|event| timeline::call_of(event) == Some(named));
    }
    if found.is_empty() {
        let named = clean(named);
        let sentence = format!("the log has no events of `{named}`; `toolgate invocation list` shows the calls");
        return Err(Failure::Said(sentence));
    }
    let text = Timeline::of(&found).draw();
    let events: Vec<Value> = found.into_iter().map(|event| event.whole).collect();
    Ok(Report::new(json!({"run_id": named, "events": events}), text))
}

async fn replayed(client: &Client, named: &str) -> Result<Report, Failure> {
    let path = |run: &str| format!("/api/v1/runs/{}/replay", escaped(run));
    match client.get(&path(named)).await {
        Ok(answer) => Ok(replay::told(answer)),
        Err(error) if is_missing(&error) => match run_of_call(client, named).await? {
            Some(run) => Ok(replay::told(replay::of_call(client.get(&path(&run)).await?, named))),
            None => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// Every event of an execution, in the order of the log.
async fn events(client: &Client, run: &str) -> Result<Vec<StoredEvent>, Failure> {
    let mut events = Vec::new();
    let mut cursor = None;
    loop {
        let query = [("run_id", Some(run.to_owned())), ("limit", Some(PAGE.to_string())), ("cursor", cursor.take())];
        let mut page = client.get(&with_query("/api/v1/audit/events", &query)).await?;
        if let Some(Value::Array(found)) = page.get_mut("events").map(Value::take) {
            for event in found {
                events.push(StoredEvent::read(event)?);
            }
        }
        cursor = at(&page, "next_cursor").as_str().map(str::to_owned);
        if cursor.is_none() {
            return Ok(events);
        }
    }
}

/// The execution that a call belongs to, where this is a call and belongs to another one than its own.
async fn run_of_call(client: &Client, named: &str) -> Result<Option<String>, Failure> {
    if !named.starts_with("inv_") {
        return Ok(None);
    }
    match client.get(&format!("/api/v1/invocations/{}", escaped(named))).await {
        Ok(invocation) => Ok(at(&invocation, "run_id").as_str().filter(|run| *run != named).map(str::to_owned)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_missing(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { status: StatusCode::NOT_FOUND, .. })
}
