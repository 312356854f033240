//! Event streams (server-sent events): each continues until the client disconnects, its key ends or the gate shuts
//! down. A page is read when the client has received the previous one, so a slow client costs no memory; between two
//! pages nothing of the ledger is held. An idle stream reads nothing: it is woken when there may be events for it.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event;
use axum::response::{IntoResponse, Response, Sse};
use futures_util::{StreamExt, stream};
use http::header;
use serde_json::Value;
use toolgate_gate::Caller;
use toolgate_gate::followers::Follower;
use toolgate_gate::refusal::Refusal;
use toolgate_model::permission::Permission;

use crate::router::App;

/// The interval of keep-alive comments.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE: &str = "keepalive";
const END_OF_STREAM: &str = "the stream ends here; reconnect with the id of the last event";
/// How long a client should wait before it reconnects.
const RETRY: Duration = Duration::from_secs(1);

/// What is followed, and the position in it.
pub(crate) trait Following: Send + 'static {
    /// Events that were read and not yet written.
    type Page: Send;

    /// The permission to see more; a caller that gains or loses it must reconnect for another view.
    const SEES_MORE: Option<Permission>;

    /// The next events that the caller may see, without advancing; `None` if there are none yet.
    fn page(&self, app: &App, caller: &Caller) -> impl Future<Output = Result<Option<Self::Page>, Refusal>> + Send;

    /// Writes events and moves on behind them.
    fn written(
        &mut self,
        app: &App,
        caller: &Caller,
        page: Self::Page,
    ) -> impl Future<Output = Result<Vec<Event>, Refusal>> + Send;
}

/// An event with its id, type and data.
pub(crate) fn event(id: &str, kind: &str, data: &Value) -> Event {
    // INVARIANT: neither has a line break, which `Event` does not take: ids are tokens, and types are names.
    let line = |text: &str| text.replace(['\r', '\n', '\0'], "");
    Event::default().id(line(id)).event(line(kind)).data(data.to_string())
}

/// The first event of a stream: when to reconnect, and after which event.
pub(crate) fn greeting(id: Option<&str>) -> Event {
    let greeting = Event::default().retry(RETRY);
    match id {
        Some(id) => greeting.id(id),
        None => greeting,
    }
}

/// Starts with these events and continues with new ones. The follower was registered before anything was read.
pub(crate) fn open<F: Following>(
    app: Arc<App>,
    caller: Caller,
    follower: Follower,
    following: F,
    beginning: Vec<Event>,
) -> Response {
    let streaming = Streaming { app, caller, follower, following, up_to_date: false, ended: false };
    let rest = stream::unfold(streaming, |mut streaming| async move {
        let events = streaming.next().await?;
        Some((events, streaming))
    });
    let events = stream::iter([beginning]).chain(rest).flat_map(stream::iter).map(Ok::<_, Infallible>);
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        // Proxies that buffer responses would delay a stream for ever.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Sse::new(events)).into_response()
}

struct Streaming<F> {
    app: Arc<App>,
    caller: Caller,
    follower: Follower,
    following: F,
    /// Whether everything was read that was there when the stream was last woken.
    up_to_date: bool,
    ended: bool,
}

impl<F: Following> Streaming<F> {
    /// The next events to send; `None` at the end.
    async fn next(&mut self) -> Option<Vec<Event>> {
        if self.ended {
            return None;
        }
        match self.events_or_sign().await {
            Ok(Some(events)) => Some(events),
            // The client gets a refusal in the response to its next request.
            Ok(None) | Err(_) => {
                self.ended = true;
                Some(vec![Event::default().comment(END_OF_STREAM)])
            }
        }
    }

    /// Waits for events, but not for ever; `None` when the stream is to end.
    async fn events_or_sign(&mut self) -> Result<Option<Vec<Event>>, Refusal> {
        let shutdown = Arc::clone(&self.app.shutdown);
        let mut sign_due = pin!(shutdown.drains_within(KEEPALIVE_INTERVAL));
        loop {
            if !self.up_to_date {
                if let Some(page) = self.following.page(&self.app, &self.caller).await? {
                    return self.shown(page).await;
                }
                self.up_to_date = true;
            }
            tokio::select! {
                () = self.follower.news() => self.up_to_date = false,
                drains = &mut sign_due => match drains {
                    true => return Ok(None),
                    false => break,
                },
            }
        }
        self.caller = self.app.gate.streams.identify_follower(&self.caller).await?;
        Ok(Some(vec![Event::default().comment(KEEPALIVE)]))
    }

    async fn shown(&mut self, page: F::Page) -> Result<Option<Vec<Event>>, Refusal> {
        // INVARIANT: checked after the events were read, so that none from after the end of a key is ever sent.
        let now = self.app.gate.authenticator.identify_again(&self.caller).await?;
        let same_view = F::SEES_MORE.is_none_or(|permission| now.may(permission) == self.caller.may(permission));
        self.caller = now;
        if !same_view {
            return Ok(None);
        }
        self.following.written(&self.app, &self.caller, page).await.map(Some)
    }
}
