//! A call with progress: lines of JSON (`Accept: application/x-ndjson`), one when an approver is asked, one when
//! guardians modify it, one when it is executed, keep-alives, and the response as the last one. A caller that closes
//! the connection before the admission cancels the call.

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
use toolgate_gate::call::{CallRequest, CallResult, Denial, Presence, Progress, UpstreamProgress, Waiting};
use toolgate_gate::ports::clock::pause;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_gate::request_context::in_current_request;

use super::error::Denied;
use super::invoke::last_step;
use crate::accepted;
use crate::approvals::shown::shown;
use crate::router::App;

/// The media type of such a response.
pub(crate) const LINES: &str = "application/x-ndjson";

/// The interval of keep-alive lines, for proxies that close a silent connection.
pub(super) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Whether the caller requests lines.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    accepted::names(headers, LINES)
}

/// Makes the call and reports its progress.
pub(super) fn stream(app: Arc<App>, caller: Caller, mut request: CallRequest) -> Response {
    let (observer, progress) = mpsc::unbounded_channel();
    let (waiting, presence) = Presence::new();
    request.observer = Some(observer);
    request.presence = Some(presence);
    let gate = Arc::clone(&app.gate);
    // Started even if the lines are never read: its refusal is recorded nevertheless.
    let call = tokio::spawn(in_current_request(async move { gate.pipeline.invoke(caller, request).await }));
    let progress_lines = ProgressLines { app, call: Some(Calling::Running(call)), progress, _waiting: waiting };
    let lines = stream::unfold(progress_lines, |mut progress_lines| async move {
        let step = progress_lines.next().await?;
        Some((line(&step), progress_lines))
    });
    (headers(), Body::from_stream(lines)).into_response()
}

/// The headers of such a response. Proxies that buffer responses would delay it.
pub(crate) fn headers() -> [(header::HeaderName, &'static str); 3] {
    [
        (header::CONTENT_TYPE, LINES),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ]
}

enum Calling {
    Running(JoinHandle<Result<CallResult, Denial>>),
    /// Earlier steps are sent first.
    Ended(Box<Result<CallResult, Denied>>),
}

struct ProgressLines {
    app: Arc<App>,
    /// `None` once the response was sent.
    call: Option<Calling>,
    progress: mpsc::UnboundedReceiver<Progress>,
    /// The caller's side of the call's presence: present as long as the lines are read.
    _waiting: Waiting,
}

impl ProgressLines {
    /// The next line; `None` after the response.
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
        // Earlier steps come before the response.
        if let Ok(step) = self.progress.try_recv() {
            self.call = Some(Calling::Ended(Box::new(outcome)));
            return Some(progress_line(&self.app, step).await);
        }
        Some(last_step(outcome))
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
                // The call continues; a client that needs more can read the approval.
                Err(_) => AskedApproval::Brief(BriefApproval { id: approval.id, tool: approval.tool }),
            },
        },
        Progress::Covered(standing_approval_ids) => CallStep::Covered { standing_approval_ids },
        Progress::Modified(change) => {
            let (policy_id, policy_version) = change.policy.map(|policy| (policy.id, policy.version)).unzip();
            CallStep::Modified { parameters: change.parameters, reason: change.reason, policy_id, policy_version }
        }
        Progress::Admitted(invocation_id) => CallStep::Admitted { invocation_id },
        Progress::Upstream(reported) => {
            let UpstreamProgress { progress, total, message } = *reported;
            CallStep::Progress { progress, total, message }
        }
    }
}
