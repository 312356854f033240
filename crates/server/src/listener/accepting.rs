//! Accepts connections when the system may have no resources: waits instead of spinning, and logs it once.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};

use super::{Accepted, Endpoint};

/// The first pause after a connection could not be accepted; each further one is twice as long.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);

/// The failures in a row.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u64,
}

impl Backoff {
    /// A connection was accepted.
    pub(super) fn accepted(&mut self) {
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "accepting connections again");
            self.failures = 0;
        }
    }

    /// A connection could not be accepted; returns the delay before the next attempt. A failure of a single connection,
    /// which its client has abandoned, is not a failure of the listener.
    pub(super) fn failed(&mut self, error: &io::Error) -> Option<Duration> {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return None;
        }
        if self.failures == 0 {
            tracing::warn!(
                %error,
                "could not accept connections; if no file descriptors are left, raise LimitNOFILE (or ulimit -n) or \
                 lower server.max_connections"
            );
        }
        let doubled = u32::try_from(self.failures.min(16)).unwrap_or(16);
        self.failures += 1;
        Some(SHORTEST.saturating_mul(1 << doubled).min(LONGEST))
    }
}

/// Accepts the connections that wait at an endpoint now, without the runtime, which may not know of them yet.
pub(super) fn waiting(endpoint: &Endpoint) -> io::Result<Vec<Accepted>> {
    let mut all = Vec::new();
    match endpoint {
        Endpoint::Tcp { listener, .. } => {
            let listener = std::net::TcpListener::from(listener.as_fd().try_clone_to_owned()?);
            while let Ok((stream, address)) = listener.accept() {
                stream.set_nonblocking(true)?;
                let stream = TcpStream::from_std(stream)?;
                all.push(Accepted::Tcp { stream, address: address.ip().to_canonical() });
            }
        }
        Endpoint::Unix(listener) => {
            let listener = std::os::unix::net::UnixListener::from(listener.as_fd().try_clone_to_owned()?);
            while let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(true)?;
                all.push(Accepted::Unix(UnixStream::from_std(stream)?));
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_that_nobody_has_accepted_are_found() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let endpoint = Endpoint::Tcp { listener, tls: None, proxy_protocol: false };
        let _clients: Vec<_> = (0..3).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
        assert_eq!(waiting(&endpoint).unwrap().len(), 3);
        assert_eq!(waiting(&endpoint).unwrap().len(), 0);
    }

    #[test]
    fn pauses_grow_to_a_second_and_begin_anew_after_a_success() {
        let mut backoff = Backoff::default();
        let full = io::Error::from_raw_os_error(24);
        let pauses: Vec<u128> = (0..9).map(|_| backoff.failed(&full).unwrap().as_millis()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        backoff.accepted();
        assert_eq!(backoff.failed(&full).unwrap().as_millis(), 10);
        assert_eq!(backoff.failed(&io::Error::from(io::ErrorKind::ConnectionAborted)), None);
    }
}
