//! A call whose caller wants to know how far it has come: lines of JSON (`Accept: application/x-ndjson`), one when a person
//! is asked, one when guardians change it, one when it is carried out, and one with the answer, which is the last. Whoever closes the connection
//! while a person is asked takes the call back.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolgate_gate::Caller;
use toolgate_gate::call::{CallAnswer, CallRequest, Denial, Progress};

use super::error::Denied;
use super::invoke::answered;
use crate::approvals::shapes;
use crate::router::App;

/// The type of such an answer.
const LINES: &str = "application/x-ndjson";

/// Whether the caller asks for lines.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted
        .flat_map(|value| value.split(','))
        .any(|kind| kind.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case(LINES)))
}

/// Makes the call, and tells how far it has come.
pub(super) fn stream(app: Arc<App>, caller: Caller, mut request: CallRequest) -> Response {
    let (observer, progress) = mpsc::unbounded_channel();
    request.observer = Some(observer);
    let gate = Arc::clone(&app.gate);
    let call = Box::pin(async move { gate.invoke(caller, request).await });
    let telling = Telling { app, call: Some(call), progress };
    let lines = stream::unfold(telling, |mut telling| async move {
        let line = telling.next().await?;
        Some((Ok::<_, io::Error>(Bytes::from(format!("{line}\n"))), telling))
    });
    let headers = [
        (header::CONTENT_TYPE, LINES),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(lines)).into_response()
}

type Calling = std::pin::Pin<Box<dyn Future<Output = Result<CallAnswer, Denial>> + Send>>;

struct Telling {
    app: Arc<App>,
    /// `None` once it was answered.
    call: Option<Calling>,
    progress: mpsc::UnboundedReceiver<Progress>,
}

impl Telling {
    /// The next line; `None` after the answer.
    async fn next(&mut self) -> Option<Value> {
        let call = self.call.as_mut()?;
        let outcome = tokio::select! {
            biased;
            Some(step) = self.progress.recv() => return Some(told(&self.app, step).await),
            outcome = call => outcome,
        };
        // What was told before the answer comes before it.
        if let Ok(step) = self.progress.try_recv() {
            let rest = std::future::ready(outcome);
            self.call = Some(Box::pin(rest));
            return Some(told(&self.app, step).await);
        }
        self.call = None;
        self.app.metrics.called(&outcome);
        let response = outcome.map_or_else(|denial| Denied::from(denial).into_response(), answered);
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Some(json!({"event": "answered", "status": status, "body": body}))
    }
}

async fn told(app: &App, step: Progress) -> Value {
    match step {
        Progress::Asked(approval) => match app.gate.present(&approval).await {
            Ok(presentation) => json!({"event": "asked", "approval": shapes::approval(&approval, &presentation)}),
            // The call goes on; whoever wants to know more can look it up.
            Err(_) => json!({"event": "asked", "approval": {"id": approval.id, "tool": approval.tool}}),
        },
        Progress::Covered(standing) => json!({"event": "covered", "standing_approval_ids": standing}),
        Progress::Modified(change) => json!({
            "event": "modified", "parameters": change.parameters, "reason": change.reason,
            "policy_id": change.policy.as_ref().map(|policy| &policy.id),
            "policy_version": change.policy.as_ref().map(|policy| &policy.version),
        }),
        Progress::Admitted(invocation) => json!({"event": "admitted", "invocation_id": invocation}),
    }
}
