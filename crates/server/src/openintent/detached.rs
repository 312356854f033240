//! Detached calls over HTTP: with `Prefer: respond-async` a call is accepted with 202; its URL returns its progress,
//! and its result is the response that the call would have had on its connection.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use toolgate_api::detached::{
    CancelCall, DeleteResult, DetachedCall, DetachedChange, DetachedChangeStatus, DetachedPage, DetachedStatus,
    FetchResult, ListDetachedCalls,
};
use toolgate_api::reply::NextCursor;
use toolgate_api::tools::CallStep;
use toolgate_gate::Caller;
use toolgate_gate::call::{DetachedView, Follower};
use toolgate_gate::ports::clock::pause;
use toolgate_gate::ports::ledger::{self, DetachedState};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::id::InvocationId;

use super::error::Denied;
use super::invoke::{last_step, result_response};
use super::progress;
use crate::mount::TypedRequest;
use crate::parameters::page;
use crate::router::App;

/// The maximum wait for a result; a longer wait is reduced to this.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// When a caller that does not wait should poll again, in seconds.
const POLL_INTERVAL: HeaderValue = HeaderValue::from_static("5");

/// The preferences of a caller (RFC 7240). Unknown ones are ignored, as the RFC requires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Preference {
    /// Whether the call is to outlive its connection.
    pub(super) detached: bool,
    /// How long the caller waits for the response.
    pub(super) wait: Duration,
}

impl Preference {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        let mut preference = Self::default();
        let mut wait = None;
        let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        for one in values.flat_map(|value| value.split(',')) {
            let one = one.split(';').next().unwrap_or_default();
            let (name, value) = one.split_once('=').unwrap_or((one, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "respond-async" => preference.detached = true,
                // RFC 7240: of several, the first counts.
                "wait" if wait.is_none() => {
                    let digits = value.trim().trim_matches('"');
                    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
                        let reason = "Prefer: wait must be a number of seconds, as in `Prefer: respond-async, wait=10`";
                        return Err(Refusal::new(Code::InvalidField, reason).with("path", "Prefer"));
                    }
                    // More digits than a number can have mean as long as possible.
                    let seconds = digits.parse().unwrap_or(u64::MAX);
                    wait = Some(Duration::from_secs(seconds).min(MAX_WAIT));
                }
                _ => {}
            }
        }
        preference.wait = wait.unwrap_or(preference.wait);
        Ok(preference)
    }
}

/// A detached call as it is shown.
pub(super) fn shown(call: &ledger::DetachedCall) -> DetachedCall {
    let url = format!("/api/v1/invocations/{}", call.id);
    DetachedCall {
        id: call.id,
        invocation_id: call.id,
        status: match call.state {
            DetachedState::Ready => DetachedStatus::Pending,
            DetachedState::Waiting => DetachedStatus::Waiting,
            DetachedState::Running => DetachedStatus::Running,
            DetachedState::Finished => DetachedStatus::Finished,
        },
        tool_name: call.tool.clone(),
        agent_id: call.agent.clone(),
        actor: call.actor.clone(),
        approval_ids: call.asked.iter().map(|asked| asked.approval).collect(),
        cancelled: call.cancelled,
        idempotency_key: call.idempotency_key.clone(),
        timestamp: call.created_at,
        finished_at: call.finished_at,
        result_url: format!("{url}/result"),
        cancel_url: format!("{url}/cancel"),
        url,
    }
}

/// The response to a call that was detached: its outcome where it ends while the caller waits, else 202.
pub(super) async fn accepted(app: &App, caller: &Caller, id: InvocationId, wait: Duration) -> Result<Response, Denied> {
    let mut response = seen(app.gate.detached.detached_call_within(caller, id, wait).await?);
    let applied = HeaderName::from_static("preference-applied");
    response.headers_mut().insert(applied, HeaderValue::from_static("respond-async"));
    Ok(response)
}

/// An ended call has the response that it would have had on its connection; any other gets 202.
fn seen(view: DetachedView) -> Response {
    match view {
        DetachedView::Ended(outcome) => {
            (*outcome).map_or_else(|denial| Denied::from(denial).into_response(), result_response)
        }
        DetachedView::Open(call) => {
            let mut response = (StatusCode::ACCEPTED, Json(shown(&call))).into_response();
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, POLL_INTERVAL);
            if let Ok(url) = HeaderValue::try_from(format!("/api/v1/invocations/{}", call.id)) {
                headers.insert(header::LOCATION, url);
            }
            response
        }
    }
}

pub(super) async fn list(request: TypedRequest<ListDetachedCalls>) -> Result<DetachedPage, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    let found = app.gate.detached.detached_calls(&caller, query.agent_id, page(query.limit, query.cursor)?).await?;
    let detached_calls = found.items.iter().map(shown).collect();
    Ok(DetachedPage { detached_calls, next_cursor: NextCursor(found.next) })
}

pub(super) async fn result(request: TypedRequest<FetchResult>) -> Result<Response, Denied> {
    let TypedRequest { app, caller, path: id, query, headers, .. } = request;
    if progress::is_wanted(&headers) {
        // Checked before anything is sent, so that a refusal has its status.
        app.gate.detached.detached_call(&caller, id).await?;
        return Ok(lines(app, caller, id));
    }
    let preferred = Preference::of(&headers)?.wait;
    let wait = query.wait_seconds.map_or(preferred, |seconds| Duration::from_secs(u64::from(seconds)));
    let waiting = app.gate.detached.detached_call_within(&caller, id, wait.min(MAX_WAIT));
    // A gate that shuts down does not wait: another one has the same information.
    let view = tokio::select! {
        view = waiting => view?,
        _ = app.shutdown.after(crate::shutdown::Phase::LameDuck) => app.gate.detached.detached_call(&caller, id).await?,
    };
    Ok(seen(view))
}

pub(super) async fn forget(request: TypedRequest<DeleteResult>) -> Result<DetachedChange, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    app.gate.detached.forget_detached(&caller, path).await?;
    Ok(DetachedChange { status: DetachedChangeStatus::Deleted, invocation_id: path })
}

pub(super) async fn cancel(request: TypedRequest<CancelCall>) -> Result<Response, Denied> {
    let TypedRequest { app, caller, path: id, .. } = request;
    let view = app.gate.detached.cancel_detached(&caller, id).await?;
    match view {
        // Cancelled, as requested.
        DetachedView::Ended(outcome)
            if outcome.as_ref().as_ref().is_err_and(|denial| denial.refusal.code() == Code::CallCancelled) =>
        {
            Ok(Json(DetachedChange { status: DetachedChangeStatus::Cancelled, invocation_id: id }).into_response())
        }
        DetachedView::Open(call) if call.state == DetachedState::Running => {
            let reason = "the call is in flight and cannot be cancelled; follow its result";
            Err(Refusal::new(Code::VersionConflict, reason).with("invocation_id", id).into())
        }
        DetachedView::Ended(_) => {
            let reason = "the call has already ended; see its result";
            Err(Refusal::new(Code::VersionConflict, reason).with("invocation_id", id).into())
        }
        view @ DetachedView::Open(_) => Ok(seen(view)),
    }
}

/// The call as lines of JSON: one for each new state, keep-alives, and the response as the last one.
fn lines(app: Arc<App>, caller: Caller, id: InvocationId) -> Response {
    let follower = app.gate.detached.follow_detached(id);
    let following = Following { app, caller, id, follower, last_state: None, ended: false };
    let lines = stream::unfold(following, |mut following| async move {
        let step = following.next().await?;
        Some((progress::line(&step), following))
    });
    (progress::headers(), Body::from_stream(lines)).into_response()
}

struct Following {
    app: Arc<App>,
    caller: Caller,
    id: InvocationId,
    follower: Follower,
    last_state: Option<DetachedState>,
    ended: bool,
}

impl Following {
    async fn next(&mut self) -> Option<CallStep> {
        if self.ended {
            return None;
        }
        loop {
            match self.look().await {
                Ok(DetachedView::Open(call)) if self.last_state == Some(call.state) => {}
                Ok(DetachedView::Open(call)) => {
                    self.last_state = Some(call.state);
                    return Some(CallStep::State { call: Box::new(shown(&call)) });
                }
                Ok(DetachedView::Ended(outcome)) => {
                    self.ended = true;
                    return Some(last_step(outcome.map_err(Denied::from)));
                }
                Err(refusal) => {
                    self.ended = true;
                    return Some(last_step(Err(refusal.into())));
                }
            }
            tokio::select! {
                () = self.follower.changed() => {}
                _ = self.app.shutdown.after(crate::shutdown::Phase::LameDuck) => {
                    self.ended = true;
                    return Some(CallStep::Interrupted);
                }
                () = pause(progress::KEEPALIVE_INTERVAL) => return Some(CallStep::Waiting),
            }
        }
    }

    async fn look(&mut self) -> Result<DetachedView, Refusal> {
        // INVARIANT: nothing is sent once the key has ended.
        self.caller = self.app.gate.authenticator.identify_again(&self.caller).await?;
        self.app.gate.detached.detached_call(&self.caller, self.id).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preference(values: &[&'static str]) -> Result<Preference, Refusal> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("prefer", HeaderValue::from_static(value));
        }
        Preference::of(&headers)
    }

    #[test]
    fn preferences_are_read_as_rfc_7240_writes_them() {
        let detached = |seconds| Ok(Preference { detached: true, wait: Duration::from_secs(seconds) });
        assert_eq!(preference(&[]), Ok(Preference::default()));
        assert_eq!(preference(&["respond-async"]), detached(0));
        assert_eq!(preference(&["Respond-Async, wait=10"]), detached(10));
        assert_eq!(preference(&["return=minimal; foo=\"some parameter\", respond-async", "wait=5"]), detached(5));
        assert_eq!(preference(&["respond-async, wait=1000000"]), detached(600));
        assert_eq!(preference(&["respond-async, wait=99999999999999999999999"]), detached(600));
        assert_eq!(preference(&["respond-async, wait=7", "wait=9"]), detached(7), "the first counts");
        assert_eq!(preference(&["handling=lenient"]), Ok(Preference::default()));
        for bad in ["wait=soon", "wait=", "wait=-1", "wait=1.5"] {
            assert_eq!(preference(&[bad]).unwrap_err().code(), Code::InvalidField, "{bad}");
        }
    }
}
