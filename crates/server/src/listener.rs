//! Accepting connections: bounded in number, in headers and in patience, and drained before the program ends.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::Request;
use hyper::body::{Body as _, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use toolgate_gate::refusal::{Code, Refusal};
use tower::ServiceExt;

use crate::caller::Peer;
use crate::lanes::{Lanes, Place};
use crate::openintent::error::Denied;

/// From this many bytes on a request is read, checked and answered aside: that takes long enough to be noticed by others.
const LARGE: u64 = 8 * 1024;

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
        let connection = connection(&builder, stream, Peer(peer), router.clone(), lane.aside.clone());
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
    aside: Handle,
) -> hyper_util::server::conn::auto::Connection<
    'static,
    TokioIo<TcpStream>,
    impl hyper::service::Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send + 'static>
    + 'static,
    TokioExecutor,
> {
    // Answers are small and waited for.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY was not taken");
    }
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let large = is_large(request.body());
        let answer = router.clone().oneshot(request.map(Body::new));
        let aside = aside.clone();
        async move { if large { Aside(aside.spawn(answer)).await } else { answer.await } }
    });
    builder.serve_connection(TokioIo::new(stream), service).into_owned()
}

/// Whether a request may take long to read: it says that it is large, or does not say how large it is.
fn is_large(body: &Incoming) -> bool {
    body.size_hint().exact().is_none_or(|bytes| bytes >= LARGE)
}

/// An answer that is made aside; given up when nobody waits for it any more, as on the lane itself.
struct Aside(JoinHandle<Result<Response, Infallible>>);

impl Future for Aside {
    type Output = Result<Response, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(Pin::new(&mut self.0).poll(context)) {
            Ok(answer) => answer,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => {
                    let reason = "the gate is ending, and gave this request up; look whether it was carried out";
                    Ok(Denied::from(Refusal::new(Code::LedgerUnavailable, reason)).into_response())
                }
            },
        })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::SocketAddr;
    use std::sync::mpsc;

    use axum::routing::post;
    use tokio::sync::oneshot;

    use super::*;

    /// Serves this on one lane while `client` runs, which is given the address.
    fn while_served(router: Router, client: impl FnOnce(SocketAddr) + Send + 'static) {
        let lanes = Lanes::start_many(1, Duration::from_secs(1)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let client = tokio::task::spawn_blocking(move || client(address));
            let (stop, stopped) = oneshot::channel::<()>();
            let serving = serve(listener, router, Limits::default(), &lanes, async { drop(stopped.await) });
            let ((), ended) = tokio::join!(serving, async {
                let ended = client.await;
                drop(stop);
                ended
            });
            ended.unwrap();
        });
        lanes.end();
    }

    fn send(address: SocketAddr, headers: &str, body: &[u8]) -> std::net::TcpStream {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "POST / HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n{headers}\r\n\r\n").unwrap();
        stream.write_all(body).unwrap();
        stream
    }

    #[test]
    fn large_requests_and_those_of_unknown_size_are_answered_aside() {
        let thread = post(|body: String| async move {
            let thread = std::thread::current();
            format!("{} bytes on {}", body.len(), thread.name().unwrap_or_default())
        });
        while_served(Router::new().route("/", thread), |address| {
            let answer = |headers: &str, body: &[u8]| {
                let mut answer = String::new();
                send(address, headers, body).read_to_string(&mut answer).unwrap();
                answer
            };
            let large = usize::try_from(LARGE).unwrap();
            let of_size = |size: usize| answer(&format!("Content-Length: {size}"), &vec![b'x'; size]);

            assert!(of_size(0).ends_with("0 bytes on lane-0"));
            assert!(of_size(large - 1).ends_with("8191 bytes on lane-0"));
            assert!(of_size(large).ends_with("8192 bytes on aside"));
            let chunked = answer("Transfer-Encoding: chunked", b"1\r\nx\r\n0\r\n\r\n");
            assert!(chunked.ends_with("1 bytes on aside"), "{chunked}");
        });
    }

    #[test]
    fn what_is_answered_aside_is_given_up_when_the_client_is_gone() {
        struct Tells(mpsc::Sender<()>);
        impl Drop for Tells {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let (tell, told) = mpsc::channel();
        let (begin, begun) = mpsc::channel();
        let waits = post(move |_: String| async move {
            let _tells = Tells(tell);
            begin.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        while_served(Router::new().route("/", waits), move |address| {
            let stream = send(address, "Content-Length: 10000", &[b'x'; 10000]);
            begun.recv().unwrap();
            assert_eq!(told.try_recv(), Err(mpsc::TryRecvError::Empty), "it waits");

            drop(stream);

            assert_eq!(told.recv(), Ok(()));
        });
    }
}
