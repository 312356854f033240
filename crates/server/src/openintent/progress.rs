//! A call whose caller wants to know how far it has come: lines of JSON (`Accept: application/x-ndjson`), one when an approver
//! is asked, one when guardians change it, one when it is executed, one now and then while nothing happens, and one with the
//! response, which is the last. A caller that closes the connection before the admission takes the call back.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, header};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use toolgate_api::tools::{AskedApproval, BriefApproval, CallStep};
use toolgate_gate::Caller;
use toolgate_gate::call::{CallRequest, CallResult, Denial, Presence, Progress, Waiting};
use toolgate_gate::ports::clock::pause;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_gate::request_context::in_current_request;

use super::error::Denied;
use super::invoke::answered;
use crate::accepted;
use crate::approvals::shown::shown;
use crate::router::App;

/// The type of such an answer.
pub(crate) const LINES: &str = "application/x-ndjson";

/// After how long a line shows that the call still waits, for proxies that close a silent connection.
pub(super) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Whether the caller asks for lines.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    accepted::names(headers, LINES)
}

/// Makes the call, and tells how far it has come.
pub(super) fn stream(app: Arc<App>, caller: Caller, mut request: CallRequest) -> Response {
    let (observer, progress) = mpsc::unbounded_channel();
    let (waiting, presence) = Presence::new();
    request.observer = Some(observer);
    request.presence = Some(presence);
    let gate = Arc::clone(&app.gate);
    // Begun although nobody may ever read the lines: its refusal is recorded all the same.
    let call = tokio::spawn(in_current_request(async move { gate.pipeline.invoke(caller, request).await }));
    let progress_lines = ProgressLines { app, call: Some(Calling::Running(call)), progress, _waiting: waiting };
    let lines = stream::unfold(progress_lines, |mut progress_lines| async move {
        let step = progress_lines.next().await?;
        Some((line(&step), progress_lines))
    });
    (headers(), Body::from_stream(lines)).into_response()
}

/// The headers of such a response. Proxies that buffer responses would hold it up.
pub(crate) fn headers() -> [(header::HeaderName, &'static str); 3] {
    [
        (header::CONTENT_TYPE, LINES),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ]
}

/// A call until its response is written.
enum Calling {
    Running(JoinHandle<Result<CallResult, Denial>>),
    /// What was told before comes first.
    Ended(Box<Result<CallResult, Denied>>),
}

struct ProgressLines {
    app: Arc<App>,
    /// `None` once it was answered.
    call: Option<Calling>,
    progress: mpsc::UnboundedReceiver<Progress>,
    /// The caller's side of the call's presence: it is there for as long as the lines are read.
    _waiting: Waiting,
}

impl ProgressLines {
    /// The next line; `None` after the answer.
    async fn next(&mut self) -> Option<CallStep> {
        let outcome = match self.call.take()? {
            Calling::Ended(outcome) => *outcome,
            Calling::Running(mut call) => {
                let ended = tokio::select! {
                    biased;
                    Some(step) = self.progress.recv() => Err(Some(step)),
                    ended = &mut call => Ok(ended),
                    () = pause(KEEPALIVE_INTERVAL) => Err(None),
                };
                match ended {
                    Ok(ended) => outcome_of(ended),
                    Err(step) => {
                        self.call = Some(Calling::Running(call));
                        return Some(match step {
                            Some(step) => progress_line(&self.app, step).await,
                            None => CallStep::Waiting,
                        });
                    }
                }
            }
        };
        // What was told before the response comes before it.
        if let Ok(step) = self.progress.try_recv() {
            self.call = Some(Calling::Ended(Box::new(outcome)));
            return Some(progress_line(&self.app, step).await);
        }
        Some(answered(outcome))
    }
}

fn outcome_of(ended: Result<Result<CallResult, Denial>, JoinError>) -> Result<CallResult, Denied> {
    let broken = |_| Denied::from(Refusal::new(Code::Internal, "the call failed inside the gate; see the gate's log"));
    ended.map_err(broken)?.map_err(Denied::from)
}

/// A step as a line of JSON.
pub(crate) fn line(step: &impl Serialize) -> io::Result<Bytes> {
    let mut line = serde_json::to_vec(step)?;
    line.push(b'\n');
    Ok(Bytes::from(line))
}

async fn progress_line(app: &App, step: Progress) -> CallStep {
    match step {
        Progress::Asked(approval) => CallStep::Asked {
            approval: match shown(app, &approval).await {
                Ok(approval) => AskedApproval::Whole(Box::new(approval)),
                // The call goes on; a client that needs more can read the approval.
                Err(_) => AskedApproval::Brief(BriefApproval { id: approval.id, tool: approval.tool }),
            },
        },
        Progress::Covered(standing_approval_ids) => CallStep::Covered { standing_approval_ids },
        Progress::Modified(change) => {
            let (policy_id, policy_version) = change.policy.map(|policy| (policy.id, policy.version)).unzip();
            CallStep::Modified { parameters: change.parameters, reason: change.reason, policy_id, policy_version }
        }
        Progress::Admitted(invocation_id) => CallStep::Admitted { invocation_id },
    }
}
