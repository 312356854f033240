//! The client against services on loopback, friendly and hostile.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolgate_model::id::CredentialId;
use toolgate_model::time::Timestamp;

use super::*;
use crate::body::DEFAULT_BODY_LIMIT;
use crate::resolver::{LookupError, SystemResolver};
use crate::time::deadline_after;

mod exchange;
mod hostile;
mod pooling;
mod rebinding;
mod spellings;
mod tls;

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A service on loopback, and the requests that it received.
struct Upstream {
    port: u16,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    /// Sends this response to every request of every connection.
    async fn answering(response: impl Into<Vec<u8>>) -> Self {
        let response = Arc::new(response.into());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let serve = move |mut stream: TcpStream| {
            let (response, seen) = (Arc::clone(&response), Arc::clone(&seen));
            async move {
                while let Some(request) = read_request(&mut stream).await {
                    seen.lock().unwrap().push(request);
                    if stream.write_all(&response).await.is_err() {
                        return;
                    }
                }
            }
        };
        Self { requests, ..Self::serving("127.0.0.1", serve).await }
    }

    /// Does this with every connection.
    async fn serving<F, Fut>(address: &str, serve: F) -> Self
    where
        F: Fn(TcpStream) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream));
            }
        });
        Self { port, connections, requests: Arc::default() }
    }

    /// Sends these bytes as response to the first request of each connection and disconnects.
    async fn answering_once(response: impl Into<Vec<u8>>) -> Self {
        let response = Arc::new(response.into());
        Self::serving("127.0.0.1", move |mut stream| {
            let response = Arc::clone(&response);
            async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(&response).await;
            }
        })
        .await
    }

    fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://127.0.0.1:{}{path}", self.port)).unwrap()
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// A request with its body, or nothing where the client hung up.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => text.push_str(std::str::from_utf8(&buffer[..read]).unwrap()),
            _ => return None,
        }
    }
}

/// Returns its results one after the other, and counts the lookups.
#[derive(Default)]
struct Fickle {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Fickle {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parsed = answers.iter().map(|response| response.iter().map(|address| address.parse().unwrap()).collect());
        Arc::new(Self { answers: Mutex::new(parsed.collect()), asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Resolve for Fickle {
    async fn resolve(&self, _: &str, _: PoolKey) -> Result<Vec<IpAddr>, LookupError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(self.answers.lock().unwrap().pop_front().unwrap_or_default())
    }
}

fn policy(allow: &[&str]) -> AddressPolicy {
    AddressPolicy::new(allow.iter().map(|network| network.parse().unwrap()).collect())
}

/// A client that may reach the services of these tests.
fn local_client() -> GuardedClient {
    GuardedClient::new(policy(&["127.0.0.1/32"]), Arc::new(SystemResolver::default()))
}

fn credential(number: u8) -> PoolKey {
    CredentialId::new(Timestamp::from_millis(1).unwrap(), [number; 10]).into()
}

fn get(url: &Url) -> OutboundRequest<'_> {
    OutboundRequest {
        pool: credential(1),
        method: Method::GET,
        url,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        deadline: deadline_after(Duration::from_secs(60)),
        hosts: &[],
        ca_certificate: None,
        body_limit: DEFAULT_BODY_LIMIT,
    }
}
