//! The only place that opens sockets to services. A name is resolved once, every address is checked, and the socket is
//! connected to a checked address: the name is not resolved a second time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::address::AddressPolicy;
use crate::destination::{Destination, Target};
use crate::error::{SendError, Stage};
use crate::pool::PoolKey;
use crate::resolver::{Resolve, resolve_checked};
use crate::time::now;
use crate::tls::{self, Trust};

/// The maximum number of addresses tried per name.
const ATTEMPTS: usize = 8;
/// The timeout per address while there is another one to try.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum buffer for a response whose head has not ended or whose body is not read yet.
const READ_BUFFER: usize = 64 * 1024;

/// An open connection, ready for requests, one after the other.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

pub(crate) struct Connector {
    pub(crate) policy: AddressPolicy,
    resolver: Arc<dyn Resolve>,
    trust: Trust,
}

impl Connector {
    pub(crate) fn new(policy: AddressPolicy, resolver: Arc<dyn Resolve>) -> Self {
        Self { policy, resolver, trust: Trust::load() }
    }

    /// Opens a connection to a destination, with the requested trust.
    pub(crate) async fn open(
        &self,
        destination: &Destination<'_>,
        ca_certificate: Option<&str>,
        holder: PoolKey,
        deadline: Instant,
    ) -> Result<Sender, SendError> {
        let tls = destination.secure.then(|| self.trust.connector(ca_certificate)).transpose()?;
        let addresses = self.addresses(destination, holder, deadline).await?;
        let stream = connect(destination, &addresses, deadline).await?;
        let Some(tls) = tls else { return speak(TokioIo::new(stream), destination).await };
        let name = server_name(destination)?;
        let stream = timeout_at(deadline, tls.connect(name, stream))
            .await
            .map_err(|_| SendError::TimedOut { stage: Stage::Tls })?
            .map_err(|error| SendError::Tls { host: destination.host.to_owned(), reason: tls::reason(&error) })?;
        speak(TokioIo::new(stream), destination).await
    }

    async fn addresses(
        &self,
        destination: &Destination<'_>,
        holder: PoolKey,
        deadline: Instant,
    ) -> Result<Vec<IpAddr>, SendError> {
        match destination.target {
            Target::Address(address) => Ok(vec![address]),
            Target::Name { name, private } => {
                let resolved = resolve_checked(&*self.resolver, &self.policy, (name, private), holder);
                timeout_at(deadline, resolved).await.map_err(|_| SendError::TimedOut { stage: Stage::Resolve })?
            }
        }
    }
}

async fn connect(
    destination: &Destination<'_>,
    addresses: &[IpAddr],
    deadline: Instant,
) -> Result<TcpStream, SendError> {
    let mut kind = io::ErrorKind::AddrNotAvailable;
    let mut waiting = addresses.iter().take(ATTEMPTS).peekable();
    while let Some(address) = waiting.next() {
        let attempt_deadline = if waiting.peek().is_some() { deadline.min(now() + ATTEMPT_TIMEOUT) } else { deadline };
        match timeout_at(attempt_deadline, connect_one(SocketAddr::new(*address, destination.port))).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => kind = error.kind(),
            Err(_) if attempt_deadline == deadline => return Err(SendError::TimedOut { stage: Stage::Connect }),
            Err(_) => kind = io::ErrorKind::TimedOut,
        }
    }
    Err(SendError::ConnectFailed { host: destination.host.to_owned(), kind })
}

async fn connect_one(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // Nothing between here and the network should lead elsewhere; this makes sure.
    if stream.peer_addr()? != address {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// INVARIANT: the certificate is checked against the host of the URL, not against the address behind it.
fn server_name(destination: &Destination<'_>) -> Result<ServerName<'static>, SendError> {
    match destination.target {
        Target::Address(address) => Ok(ServerName::IpAddress(address.into())),
        Target::Name { name, .. } => ServerName::try_from(name.to_owned()).map_err(|_| SendError::Tls {
            host: destination.host.to_owned(),
            reason: "the host name is not valid in a certificate; correct the host of the service's URL",
        }),
    }
}

async fn speak<T>(io: T, destination: &Destination<'_>) -> Result<Sender, SendError>
where
    T: Read + Write + Unpin + Send + 'static,
{
    let made = Builder::new().max_buf_size(READ_BUFFER).handshake(io).await;
    let (sender, connection) = made.map_err(|_| SendError::ConnectFailed {
        host: destination.host.to_owned(),
        kind: io::ErrorKind::ConnectionAborted,
    })?;
    // The connection lives as long as its sender; its errors are reported to the request that waits for a response.
    tokio::spawn(connection);
    Ok(sender)
}
