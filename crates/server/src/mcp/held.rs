//! A call that waits for an approver is held on its connection for a while. A client that wants to hear of progress gets a
//! stream meanwhile. If nobody has decided by then, the result says so, and the same call again picks it up.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::Event;
use axum::response::{IntoResponse, Response, Sse};
use futures_util::stream;
use serde_json::{Map, Value, json};
use toolgate_gate::call::{DetachedView, Presence};
use toolgate_gate::ports::ledger::DetachedCall;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::id::InvocationId;

use super::call::Context;
use super::reply::{Reply, RpcError, completed, message};
use super::{interruption, sse, tasks};
use crate::shutdown::Phase;

/// How often a client hears that its call still waits.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// The response to a call that goes on without its connection. One with a digest may be interrupted for the user of its
/// client.
pub(super) async fn reply(context: Context, id: InvocationId, digest: Option<String>) -> Result<Reply, RpcError> {
    if context.follows_tasks() {
        return tasks::created(&context, id).await;
    }
    if let Some(digest) = digest {
        let interrupted = interruption::interrupted(&context, id, &digest).await;
        if let Some(members) = interrupted.map_err(|refusal| RpcError::of_refusal(&refusal))? {
            return Ok(Reply::Result(members));
        }
    }
    held(context, id).await
}

/// The response to a call that goes on after an interruption.
pub(super) async fn go_on(context: Context, id: InvocationId, is_declined: bool) -> Result<Reply, RpcError> {
    if is_declined {
        let cancelled = context.app.gate.detached.cancel_detached(&context.caller, id).await;
        return context.outcome(id, cancelled).await.map(Reply::Result);
    }
    held(context, id).await
}

async fn held(context: Context, id: InvocationId) -> Result<Reply, RpcError> {
    if context.takes_stream && context.progress_token.is_some() {
        return Ok(Reply::Whole(Box::new(streamed(context, id))));
    }
    let hold = context.app.mcp.settings.hold;
    context.outcome_within(id, hold).await.map(Reply::Result)
}

impl Context {
    /// What came of a detached call, once it has ended or this much time has passed.
    async fn outcome_within(&self, id: InvocationId, wait: Duration) -> Result<Map<String, Value>, RpcError> {
        let reader = &self.app.gate.detached;
        let view = tokio::select! {
            view = reader.detached_call_within(&self.caller, id, wait) => view,
            // A gate that stops lets nobody wait: another one knows as much.
            _ = self.app.shutdown.after(Phase::LameDuck) => reader.detached_call(&self.caller, id).await,
            () = self.presence.clone().gone() => reader.detached_call(&self.caller, id).await,
        };
        // INVARIANT: no result is returned once the key has ended.
        let view = self.app.gate.authenticator.identify_again(&self.caller).await.and(view);
        self.outcome(id, view).await
    }

    async fn outcome(
        &self,
        id: InvocationId,
        view: Result<DetachedView, Refusal>,
    ) -> Result<Map<String, Value>, RpcError> {
        let outcome = match view {
            Ok(DetachedView::Open(call)) => return self.waiting(&call),
            Ok(DetachedView::Ended(outcome)) => *outcome,
            Err(refusal) => return self.without_outcome(id, &refusal).await,
        };
        if let Err(refusal) = self.app.gate.pipeline.picked_up(&self.caller, id).await {
            tracing::warn!(%id, %refusal, "the result of a call was fetched and could not be forgotten");
        }
        self.delivered(outcome)
    }

    /// A result that says why there is none. What there will never be is forgotten, so that the same call is a new one;
    /// everything else is kept for the same call, which must not be made a second time.
    async fn without_outcome(&self, id: InvocationId, refusal: &Refusal) -> Result<Map<String, Value>, RpcError> {
        let mut reason = refusal.reason().to_owned();
        if is_final(refusal.code()) {
            let _ = self.app.gate.pipeline.picked_up(&self.caller, id).await;
        } else {
            reason += "; the call is kept: make the same call again to get its result";
        }
        let code = ("code".to_owned(), json!(refusal.code().as_str()));
        self.form.unfinished(reason, Map::from_iter([code, ("invocation_id".to_owned(), json!(id))]))
    }

    /// A result that says that the call waits, and how to go on.
    fn waiting(&self, call: &DetachedCall) -> Result<Map<String, Value>, RpcError> {
        let approvals: Vec<String> = call.asked.iter().map(|asked| asked.approval.to_string()).collect();
        let reason = match approvals.last() {
            Some(approval) => format!(
                "This call waits for a person's approval ({approval}). Nothing was run yet. Make the same call again later \
                 to get its result; it is not asked for twice."
            ),
            None => "This call is not finished. Make the same call again later to get its result.".to_owned(),
        };
        let details = [
            ("code".to_owned(), json!(Code::ApprovalRequired.as_str())),
            ("invocation_id".to_owned(), json!(call.id)),
            ("approval_ids".to_owned(), json!(approvals)),
        ];
        self.form.unfinished(reason, Map::from_iter(details))
    }
}

/// Whether the result of a call that could not be read for this reason will never be there.
fn is_final(code: Code) -> bool {
    matches!(code, Code::CredentialDamaged | Code::InvocationNotFound | Code::OutcomeUnknown | Code::ResultGone)
}

/// A call that is held while its client hears of progress.
struct Held {
    context: Context,
    id: InvocationId,
    left: Duration,
    sent: u64,
    ended: bool,
    /// Gone when the client cancels the request, which the call survives.
    client: Presence,
}

fn streamed(context: Context, id: InvocationId) -> Response {
    let left = context.app.mcp.settings.hold;
    let client = context.cancellable(Presence::default());
    let held = Held { context, id, left, sent: 0, ended: false, client };
    let events = stream::unfold(held, |mut held| async move {
        let event = held.next().await?;
        Some((Ok::<Event, Infallible>(event), held))
    });
    (sse::HEADERS, Sse::new(events)).into_response()
}

impl Held {
    /// The next message; `None` after the response.
    async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        let context = &self.context;
        let view = match self.sent {
            0 => context.app.gate.detached.detached_call(&context.caller, self.id).await,
            _ => self.look().await,
        };
        if matches!(view, Ok(DetachedView::Open(_))) && !self.left.is_zero() {
            self.sent += 1;
            return Some(self.progress());
        }
        self.ended = true;
        let outcome = self.context.outcome(self.id, view).await;
        let id = &self.context.id;
        let written = outcome.and_then(|members| message(id, &completed(self.context.era, &members)));
        Some(sse::event(&written.unwrap_or_else(|error| error.body(Some(id)).to_string())))
    }

    /// Waits until the call has ended, but not for longer than a client is left without a word.
    async fn look(&mut self) -> Result<DetachedView, Refusal> {
        let (app, caller) = (&self.context.app, &self.context.caller);
        let step = PROGRESS_INTERVAL.min(self.left);
        self.left = self.left.saturating_sub(step);
        // INVARIANT: nothing is sent once the key has ended.
        let caller = app.gate.authenticator.identify_again(caller).await?;
        tokio::select! {
            view = app.gate.detached.detached_call_within(&caller, self.id, step) => view,
            _ = app.shutdown.after(Phase::LameDuck) => {
                self.left = Duration::ZERO;
                app.gate.detached.detached_call(&caller, self.id).await
            }
            () = self.client.clone().gone() => {
                self.left = Duration::ZERO;
                app.gate.detached.detached_call(&caller, self.id).await
            }
        }
    }

    fn progress(&self) -> Event {
        let params = json!({
            "progressToken": self.context.progress_token, "progress": self.sent, "message": "waiting for approval",
        });
        sse::notification("notifications/progress", &params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_may_still_be_read_is_not_forgotten() {
        let last: Vec<&str> = Code::ALL.iter().filter(|code| is_final(**code)).map(|code| code.as_str()).collect();
        assert_eq!(last, ["CREDENTIAL_DAMAGED", "INVOCATION_NOT_FOUND", "OUTCOME_UNKNOWN", "RESULT_GONE"]);
    }
}
