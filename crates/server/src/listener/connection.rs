//! One connection, from its first byte to its end by its client, a deadline or the shutdown.

use std::convert::Infallible;
use std::future::{Ready, poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::future::Either;
use http::{HeaderValue, Method, Request, Version, header};
use hyper::body::{Body as _, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::runtime::Handle;
use tokio::time::Instant;
use toolgate_gate::refusal::{Code, Refusal};
use tower::ServiceExt;

use super::activity::Activity;
use super::offload::Offloaded;
use super::prefetched::Prefetched;
use super::stream::Stream;
use crate::caller::Peer;
use crate::held_body::hold;
use crate::listener::TrustedProxies;
use crate::openintent::error::Denied;
use crate::request_context;
use crate::shutdown::{Phase, Shutdown};

/// From this size, in bytes, a request is processed on another thread, because that takes long enough to delay others.
/// A request without a stated size is read up to this first.
const LARGE: u64 = 8 * 1024;
/// A response up to this size is in the socket buffers once it is written, so the connection is idle from then on.
const BUFFERED: u64 = 64 * 1024;
/// The timeout for a connection to close.
const CLOSING: Duration = Duration::from_secs(2);
/// The timeout for the head of a request that may have been sent before its client could know of the shutdown.
const LAST_HEAD: Duration = Duration::from_secs(1);
/// The deadline of a connection that has none.
const NEVER: Duration = Duration::from_secs(30 * 24 * 3600);
/// The routes that are served on connections for probes.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) builder: Builder<TokioExecutor>,
    pub(super) shutdown: Arc<Shutdown>,
    pub(super) proxies: TrustedProxies,
}

/// Serves a connection until it ends.
pub(super) async fn serve(shared: &Arc<Shared>, stream: Stream, peer: Peer, activity: &Arc<Activity>, offload: Handle) {
    let service = hyper::service::service_fn({
        let (shared, activity) = (Arc::clone(shared), Arc::clone(activity));
        move |request| respond(&shared, &activity, peer.clone(), &offload, request)
    });
    let connection = shared.builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut deadline = pin!(tokio::time::sleep_until(next(activity)));
    let mut next_phase = Box::pin(shared.shutdown.after(Phase::Serving));
    let mut is_closing = false;
    // Whether the connection ends with the request whose head it waits for.
    let mut is_last = false;
    loop {
        let event = poll_fn(|context| {
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(Event::Ended(ended.map_err(|error| error.to_string())));
            }
            if is_last && !activity.awaits_head() {
                return Poll::Ready(Event::LastHead);
            }
            // Whatever the connection just did may have brought its deadline nearer.
            let now_due = next(activity);
            if !is_closing && now_due < deadline.deadline() {
                deadline.as_mut().reset(now_due);
            }
            if deadline.as_mut().poll(context).is_ready() {
                return Poll::Ready(Event::Deadline);
            }
            next_phase.as_mut().poll(context).map(Event::Phase)
        });
        match event.await {
            Event::Ended(Ok(())) => return,
            Event::Ended(Err(error)) => return tracing::debug!(error, "a connection ended with an error"),
            Event::Deadline => match activity.deadline() {
                _ if is_closing || is_last => return,
                Some(due) if due <= Instant::now() => {
                    if !activity.is_idle() {
                        return tracing::debug!("a connection sent no complete request in time");
                    }
                    connection.as_mut().graceful_shutdown();
                    is_closing = true;
                    deadline.as_mut().reset(Instant::now() + CLOSING);
                }
                due => deadline.as_mut().reset(due.unwrap_or_else(|| Instant::now() + NEVER)),
            },
            Event::Phase(phase) => {
                next_phase.set(shared.shutdown.after(phase));
                // An idle HTTP/1.1 connection is not closed in the lame duck phase: its client may be sending a request
                // just now. The response to it says that it is the last.
                if phase == Phase::Draining && activity.awaits_head() {
                    is_last = true;
                    deadline.as_mut().reset(next(activity).min(Instant::now() + LAST_HEAD));
                } else if phase == Phase::Draining || activity.is_http2() {
                    connection.as_mut().graceful_shutdown();
                }
            }
            Event::LastHead => {
                is_last = false;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

enum Event {
    Ended(Result<(), String>),
    Deadline,
    Phase(Phase),
    LastHead,
}

fn next(activity: &Activity) -> Instant {
    activity.deadline().unwrap_or_else(|| Instant::now() + NEVER)
}

fn respond(
    shared: &Arc<Shared>,
    activity: &Arc<Activity>,
    mut peer: Peer,
    offload: &Handle,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response, Infallible>> + Send + use<> {
    let version = request.version();
    let in_flight = activity.begin(version == Version::HTTP_2);
    let is_proxy = shared.proxies.contains(peer.address);
    // A proxy presents its own certificate, which says nothing about its clients.
    if is_proxy {
        peer.certificate = None;
    }
    let context = request_context::of(request.headers(), is_proxy);
    let request_id = request_context::header_of(context.id);
    peer.request = Some(context);
    peer.address = shared.proxies.client(peer.address, request.headers());
    let only_probes = peer.is_reserved();
    let refusal = match PROBES.contains(&request.uri().path()) {
        true => None,
        false if only_probes => {
            let reason = "the gate has reached its connection limit; try again, or raise server.max_connections";
            Some(Refusal::new(Code::Overloaded, reason))
        }
        false => peer.certificate.as_ref().and_then(|certificate| certificate.check_again().err()),
    };
    let closes = only_probes || refusal.is_some();
    request.extensions_mut().insert(peer);
    let (shared, offload) = (Arc::clone(shared), offload.clone());
    let is_post = request.method() == Method::POST;
    let response = async move {
        let mut response = if let Some(refusal) = refusal {
            Denied::from(refusal).into_response()
        } else {
            route(shared.router.clone(), request, offload).await?
        };
        if version != Version::HTTP_2 && (closes || shared.shutdown.phase() != Phase::Serving) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response.headers_mut().insert(request_context::HEADER, request_id);
        Ok(hold(response, in_flight, BUFFERED))
    };
    if is_post { begin(response) } else { Either::Left(response) }
}

/// A response future that was not polled, was polled, or is complete.
type Begun<F> = Either<F, Either<Pin<Box<F>>, Ready<<F as Future>::Output>>>;

/// Polls a response before hyper gets it, which would drop it unpolled if the client closes its side right after the
/// request. Whatever changes something, or must be recorded, has started then.
fn begin<F: Future>(response: F) -> Begun<F> {
    let mut response = Box::pin(response);
    // The next poll replaces the waker.
    match response.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Either::Right(Either::Right(ready(output))),
        Poll::Pending => Either::Right(Either::Left(response)),
    }
}

/// Passes a request to the router: on the connection's own thread, or on the other one if it turns out to be large.
async fn route(router: Router, request: Request<Incoming>, offload: Handle) -> Result<Response, Infallible> {
    match request.body().size_hint().exact() {
        Some(bytes) if bytes >= LARGE => Offloaded::new(&offload, router.oneshot(request.map(Body::new))).await,
        Some(_) => router.oneshot(request.map(Body::new)).await,
        // The size is not stated. A started request must continue as far as possible if the client disconnects in the
        // meantime: a task.
        None => {
            let routed = async move {
                let (head, body) = request.into_parts();
                let body = Prefetched::read(body, LARGE).await;
                let (is_whole, request) = (body.is_whole(), Request::from_parts(head, Body::new(body)));
                let response = router.oneshot(request);
                if is_whole { response.await } else { Offloaded::new(&offload, response).await }
            };
            Offloaded::new(&Handle::current(), routed).await
        }
    }
}
