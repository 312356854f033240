//! Accepting connections: bounded in number and in time, in the clear or by TLS, and drained before the program ends.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::Instant;

use self::accepting::Backoff;
use self::activity::{Activity, Timeouts};
use self::client_certificate::VerifiedCertificate;
use self::connection::Shared;
use self::slots::{NoSlot, Slots};
use self::stream::{Stream, Transport};
use crate::caller::Peer;
use crate::operations::metrics::OpenConnections;
use crate::shutdown::{Phase, Shutdown};
use crate::workers::WorkerRuntimes;

pub use self::forwarded::{ForwardedHeader, TrustedProxies};
pub use self::tls::{ClientCertificates, Tls, TlsError, TlsSettings};

mod accepting;
mod activity;
pub(crate) mod client_certificate;
mod connection;
mod forwarded;
mod offload;
mod prefetched;
mod proxy_protocol;
pub(crate) mod slots;
mod stream;
#[cfg(test)]
mod tests;
mod tls;

/// The timeout for a request on a connection reserved for probes.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The limits of one client, and of all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections of one address at a time on which no key was verified.
    pub connections_of_address: usize,
    /// The timeout for the head of a request; for the first one it starts with the accepted connection.
    pub head_timeout: Duration,
    /// The timeout for a connection without a request.
    pub idle_timeout: Duration,
    /// The timeout for requests in flight at shutdown.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_of_address: 2048,
            head_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(75),
            drain_timeout: Duration::from_secs(30),
        }
    }
}

pub enum Endpoint {
    Tcp {
        listener: TcpListener,
        tls: Option<Arc<Tls>>,
        /// Whether each connection begins with a header of the PROXY protocol.
        proxy_protocol: bool,
    },
    /// A file, for programs of this machine.
    Unix(UnixListener),
}

/// A connection that was accepted, before anything was read from it.
enum Accepted {
    Tcp { stream: TcpStream, address: IpAddr },
    Unix(UnixStream),
}

pub struct Serving {
    /// All requests go there.
    pub router: Router,
    pub limits: Limits,
    /// The proxies that are trusted for client addresses.
    pub proxies: TrustedProxies,
    pub shutdown: Arc<Shutdown>,
    /// Counts the open connections.
    pub connections: OpenConnections,
}

/// Serves until the shutdown drains, then lets the requests in flight finish.
pub async fn serve(endpoints: Vec<Endpoint>, serving: Serving, workers: &WorkerRuntimes) {
    let Serving { router, limits, proxies, shutdown, connections } = serving;
    let mut builder = Builder::new(TokioExecutor::new());
    // The connection itself watches its deadlines, in every protocol alike.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_headers(100);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(100).max_header_list_size(32 * 1024);
    builder.http2().keep_alive_interval(limits.idle_timeout / 3).keep_alive_timeout(limits.head_timeout);
    let shared = Arc::new(Shared { router, builder, shutdown: Arc::clone(&shutdown), proxies });
    let slots = Arc::new(Slots::new(limits.connections, limits.connections_of_address, connections));
    let timeouts = Timeouts { head: limits.head_timeout, idle: limits.idle_timeout };
    let accepting = endpoints.into_iter().map(|endpoint| {
        let bound_endpoint =
            BoundEndpoint { endpoint, shared: Arc::clone(&shared), slots: Arc::clone(&slots), timeouts };
        let shutdown = &shutdown;
        async move {
            tokio::select! {
                () = drains(shutdown) => {}
                () = bound_endpoint.accept_all(workers) => {}
            }
            bound_endpoint.accept_last(workers);
        }
    });
    futures_util::future::join_all(accepting).await;
    if tokio::time::timeout(limits.drain_timeout, slots.all_returned()).await.is_err() {
        tracing::warn!("some requests did not finish in time");
    }
}

async fn drains(shutdown: &Shutdown) {
    let mut phase = shutdown.phase();
    while phase != Phase::Draining {
        phase = shutdown.after(phase).await;
    }
}

struct BoundEndpoint {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    slots: Arc<Slots>,
    timeouts: Timeouts,
}

impl BoundEndpoint {
    async fn accept_all(&self, workers: &WorkerRuntimes) {
        let mut backoff = Backoff::default();
        let mut rejected = RejectedConnections::default();
        loop {
            let accepted = match self.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    if let Some(pause) = backoff.failed(&error) {
                        tokio::time::sleep(pause).await;
                    }
                    continue;
                }
            };
            backoff.accepted();
            self.begin(accepted, workers, &mut rejected);
        }
    }

    /// Serves connections that are established and not accepted yet. Closing the endpoint would reset them, and a proxy
    /// does not repeat a request that it has sent.
    fn accept_last(&self, workers: &WorkerRuntimes) {
        let mut rejected = RejectedConnections::default();
        match accepting::waiting(&self.endpoint) {
            Ok(waiting) => waiting.into_iter().for_each(|accepted| self.begin(accepted, workers, &mut rejected)),
            Err(error) => tracing::warn!(%error, "could not accept the connections that were still waiting"),
        }
    }

    /// Serves a connection on one of the workers, if there is a slot for it.
    fn begin(&self, accepted: Accepted, workers: &WorkerRuntimes, rejected: &mut RejectedConnections) {
        let slot = match self.slots.take(self.counted(&accepted)) {
            Ok(slot) => slot,
            Err(why) => return rejected.one(why),
        };
        let Some(worker) = workers.slot() else { return };
        let timeouts = match slot.is_reserved() {
            // Clients that want more than a probe must not hold these up either.
            true => Timeouts { head: self.timeouts.head.min(PROBE_TIMEOUT), idle: PROBE_TIMEOUT },
            false => self.timeouts,
        };
        let peer = Peer::new(accepted.address(), Arc::clone(&slot));
        let transport = match accepted.on(&worker.handle) {
            Ok(transport) => transport,
            Err(error) => return tracing::warn!(%error, "could not register a connection with its worker"),
        };
        let activity = Arc::new(Activity::new(timeouts));
        let task = Connecting {
            shared: Arc::clone(&self.shared),
            tls: self.tls(),
            proxy_protocol: self.expects_proxy_header(),
            activity: Arc::clone(&activity),
            deadline: Instant::now() + timeouts.head,
            peer,
        };
        let (handle, offload) = (worker.handle.clone(), worker.offload.clone());
        let task = handle.spawn(async move {
            task.run(transport, offload).await;
            drop(worker);
        });
        slot.belongs_to(task.abort_handle(), activity);
    }

    async fn accept(&self) -> std::io::Result<Accepted> {
        match &self.endpoint {
            Endpoint::Tcp { listener, .. } => {
                let (stream, address) = listener.accept().await?;
                Ok(Accepted::Tcp { stream, address: address.ip().to_canonical() })
            }
            Endpoint::Unix(listener) => Ok(Accepted::Unix(listener.accept().await?.0)),
        }
    }

    /// The address that a connection counts for: a trusted proxy brings the connections of many clients.
    fn counted(&self, accepted: &Accepted) -> Option<IpAddr> {
        match accepted {
            Accepted::Tcp { address, .. } if !self.shared.proxies.contains(*address) => Some(*address),
            _ => None,
        }
    }

    fn tls(&self) -> Option<Arc<Tls>> {
        match &self.endpoint {
            Endpoint::Tcp { tls, .. } => tls.clone(),
            Endpoint::Unix(_) => None,
        }
    }

    fn expects_proxy_header(&self) -> bool {
        matches!(&self.endpoint, Endpoint::Tcp { proxy_protocol: true, .. })
    }
}

impl Accepted {
    /// The peer address; a Unix socket counts as loopback.
    fn address(&self) -> IpAddr {
        match self {
            Self::Tcp { address, .. } => *address,
            Self::Unix(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }

    /// Registers the connection with this runtime.
    fn on(self, runtime: &tokio::runtime::Handle) -> std::io::Result<Transport> {
        match self {
            Self::Tcp { stream, .. } => {
                // Responses are small and waited for.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "could not set TCP_NODELAY");
                }
                let stream = stream.into_std()?;
                let _entered = runtime.enter();
                TcpStream::from_std(stream).map(Transport::Tcp)
            }
            Self::Unix(stream) => {
                let stream = stream.into_std()?;
                let _entered = runtime.enter();
                UnixStream::from_std(stream).map(Transport::Unix)
            }
        }
    }
}

/// A connection until HTTP is spoken on it.
struct Connecting {
    shared: Arc<Shared>,
    tls: Option<Arc<Tls>>,
    proxy_protocol: bool,
    activity: Arc<Activity>,
    deadline: Instant,
    peer: Peer,
}

impl Connecting {
    async fn run(mut self, transport: Transport, offload: tokio::runtime::Handle) {
        let begun = tokio::time::timeout_at(self.deadline, self.begin(transport)).await;
        let transport = match begun {
            Ok(Ok(transport)) => transport,
            Ok(Err(error)) => return tracing::debug!(%error, "could not set up a connection"),
            Err(_) => return tracing::debug!("a connection was not set up in time"),
        };
        let stream = Stream::new(transport, Arc::clone(&self.activity));
        connection::serve(&self.shared, stream, self.peer, &self.activity, offload).await;
    }

    /// Reads what precedes HTTP.
    async fn begin(&mut self, transport: Transport) -> std::io::Result<Transport> {
        let Transport::Tcp(mut stream) = transport else { return Ok(transport) };
        if self.proxy_protocol {
            if !self.shared.proxies.contains(self.peer.address) {
                return Err(std::io::Error::other("it does not come from a trusted proxy"));
            }
            if let Some(client) = proxy_protocol::read(&mut stream).await? {
                self.peer.address = client;
            }
        }
        let Some(tls) = &self.tls else { return Ok(Transport::Tcp(stream)) };
        let config = tls.current();
        let stream = tokio_rustls::TlsAcceptor::from(Arc::clone(&config)).accept(stream).await?;
        self.peer.certificate = VerifiedCertificate::of(&stream, tls, config).map(Arc::new);
        Ok(Transport::Tls(Box::new(stream)))
    }
}

/// Connections without a slot: the first of a period is logged, with the number since the last line.
#[derive(Default)]
struct RejectedConnections {
    count: u64,
    logged: Option<Instant>,
}

impl RejectedConnections {
    const PAUSE: Duration = Duration::from_secs(10);

    fn one(&mut self, why: NoSlot) {
        self.count += 1;
        if self.logged.is_some_and(|logged| logged.elapsed() < Self::PAUSE) {
            return;
        }
        let count = std::mem::take(&mut self.count);
        self.logged = Some(Instant::now());
        match why {
            NoSlot::Full => tracing::warn!(count, "closed connections: server.max_connections are open"),
            NoSlot::Address => tracing::warn!(
                count,
                "closed connections: their address has server.max_connections_per_address open without a verified key"
            ),
        }
    }
}
