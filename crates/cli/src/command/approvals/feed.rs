//! Follows the events of approvals, and resumes the stream after a failure.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use toolgate_api::approvals::{ApprovalQuery, FollowApprovals, ListApprovals, StreamQuery};
use toolgate_api::parameters::{Cursor, Limit};
use toolgate_model::approval::ApprovalStatus;

use crate::client::{Client, ClientError};
use crate::clock::pause;

/// The first delay before the stream is opened again; doubled each time.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const MAX_RETRY: Duration = Duration::from_secs(10);
const PAGE: u32 = 200;

#[derive(Debug)]
pub(super) enum News {
    /// The stream is open; no later event is missed.
    Open,
    /// All pending approvals.
    Waiting(Vec<Value>),
    /// An event, as the gate sent it.
    Happened(Value),
    /// The stream failed and will be opened again.
    Lost(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Only events.
    Events,
    /// Also all pending approvals, each time the stream is opened.
    Waiting,
}

/// Runs until the receiver is dropped, or until retrying is useless.
pub(super) async fn follow(
    client: &Client,
    mut after: Option<String>,
    start: Start,
    sender: UnboundedSender<News>,
) -> Result<(), ClientError> {
    let mut retry = None;
    loop {
        let error = match one_stream(client, &mut after, start, &sender, &mut retry).await {
            Ok(()) => return Ok(()),
            Err(error) if error.may_pass() => error,
            Err(error) => return Err(error),
        };
        if sender.send(News::Lost(error.to_string())).is_err() {
            return Ok(());
        }
        let wait = retry.map_or(FIRST_RETRY, |before: Duration| (before * 2).min(MAX_RETRY));
        pause(wait).await;
        retry = Some(wait);
    }
}

/// Ends without an error when the receiver is dropped.
async fn one_stream(
    client: &Client,
    after: &mut Option<String>,
    start: Start,
    sender: &UnboundedSender<News>,
    retry: &mut Option<Duration>,
) -> Result<(), ClientError> {
    let query = StreamQuery { after: after.clone() };
    let mut events = client.to::<FollowApprovals>().query(&query).events_as::<Value>().await?;
    *retry = None;
    if sender.send(News::Open).is_err() {
        return Ok(());
    }
    // Events between the opening and this list are received again, which is harmless.
    if start == Start::Waiting && sender.send(News::Waiting(waiting(client).await?)).is_err() {
        return Ok(());
    }
    loop {
        let value = match events.next().await {
            Ok(value) => value,
            Err(error) => {
                // Before the first event, the position at which the stream started.
                *after = events.position().map(str::to_owned).or(after.take());
                return Err(error);
            }
        };
        *after = events.position().map(str::to_owned).or(after.take());
        if sender.send(News::Happened(value)).is_err() {
            return Ok(());
        }
    }
}

/// A page of approvals. Each is parsed separately: an invalid one must not hide the others.
#[derive(Deserialize)]
struct Waiting {
    approvals: Vec<Value>,
    next_cursor: Option<String>,
}

async fn waiting(client: &Client) -> Result<Vec<Value>, ClientError> {
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let query = ApprovalQuery {
            status: Some(ApprovalStatus::Pending),
            limit: Some(Limit(PAGE)),
            cursor: cursor.map(Cursor),
            ..ApprovalQuery::default()
        };
        let page: Waiting = client.to::<ListApprovals>().query(&query).send_as().await?;
        found.extend(page.approvals);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(found);
        }
    }
}
