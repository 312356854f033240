//! Accepting connections: bounded in number, in headers and in patience, and drained before the program ends.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::ServiceExt;

use crate::caller::Peer;
use crate::lanes::{Lanes, Place};

/// What one client, or all together, may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// How long the headers of a request may take to arrive.
    pub header_patience: Duration,
    /// How long requests under way may take when the program is asked to end.
    pub drain_patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 4096, header_patience: Duration::from_secs(15), drain_patience: Duration::from_secs(30) }
    }
}

/// Serves until `stop` is ready, then lets the requests under way finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    lanes: &Lanes,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let under_way = GracefulShutdown::new();
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.header_patience).max_headers(100);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(100).max_header_list_size(32 * 1024);
    let mut stop = std::pin::pin!(stop);
    loop {
        let place = tokio::select! {
            () = &mut stop => break,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Out of file descriptors, most likely: let other tasks give some back.
                tokio::task::yield_now().await;
                continue;
            }
        };
        let Some(lane) = lanes.place() else { break };
        let stream = match move_to(&lane, stream) {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken over");
                continue;
            }
        };
        let connection = connection(&builder, stream, Peer(peer), router.clone());
        let connection = under_way.watch(connection);
        let handle = lane.handle.clone();
        handle.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended with an error");
            }
            drop((place, lane));
        });
    }
    drop(listener);
    tokio::select! {
        () = under_way.shutdown() => {}
        () = tokio::time::sleep(limits.drain_patience) => tracing::warn!("some requests did not end in time"),
    }
}

/// Has the lane told when there is something to read or room to write.
fn move_to(lane: &Place, stream: TcpStream) -> std::io::Result<TcpStream> {
    let stream = stream.into_std()?;
    let _entered = lane.handle.enter();
    TcpStream::from_std(stream)
}

fn connection(
    builder: &Builder<TokioExecutor>,
    stream: TcpStream,
    peer: Peer,
    router: Router,
) -> hyper_util::server::conn::auto::Connection<
    'static,
    TokioIo<TcpStream>,
    impl hyper::service::Service<
        Request<Incoming>,
        Response = axum::response::Response,
        Error = Infallible,
        Future: Send + 'static,
    > + 'static,
    TokioExecutor,
> {
    // Answers are small and waited for.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY was not taken");
    }
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.clone().oneshot(request.map(Body::new))
    });
    builder.serve_connection(TokioIo::new(stream), service).into_owned()
}
