//! The client for every outgoing request. It connects only where the guard allows, shares no connection between
//! credentials, follows no redirects, uses no proxy, and ends with the deadline whatever the service does.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};
use toolgate_model::constraint::HostSet;
use url::{Position, Url};

use crate::address::AddressPolicy;
use crate::body::{self, InboundResponse};
use crate::connector::Connector;
use crate::destination::Destination;
use crate::error::{SendError, Stage};
use crate::pool::{Connection, Pool, PoolKey};
use crate::resolver::Resolve;
use crate::time::now;

#[cfg(test)]
mod tests;

pub(crate) use self::open_response::OpenResponse;

mod open_response;

/// A request to a service.
pub struct OutboundRequest<'a> {
    /// The requests that it shares connections with.
    pub pool: PoolKey,
    pub method: Method,
    pub url: &'a Url,
    /// Headers that belong to the request. Those that frame or route it are set here and refused from elsewhere.
    pub headers: HeaderMap,
    /// The body, which may be empty.
    pub body: Bytes,
    /// The deadline of the whole exchange, including the last byte of the response.
    pub deadline: Instant,
    /// Every one of these must contain the host.
    pub hosts: &'a [&'a HostSet],
    /// PEM text of the only CAs to trust; without it, the system's.
    pub ca_certificate: Option<&'a str>,
    /// The limit of the response body ([`body::DEFAULT_BODY_LIMIT`] unless there is a reason).
    pub body_limit: usize,
}

pub struct GuardedClient {
    connector: Connector,
    pool: Arc<Pool>,
}

impl GuardedClient {
    /// A client that reaches the addresses that this policy allows, with names resolved by this resolver.
    pub fn new(policy: AddressPolicy, resolver: Arc<dyn Resolve>) -> Self {
        Self { connector: Connector::new(policy, resolver), pool: Arc::default() }
    }

    /// The same with at most so many connections that wait for another call.
    pub fn keeping(self, connections: usize) -> Self {
        Self { pool: Arc::new(Pool::keeping(connections)), ..self }
    }

    /// Sends a request once and reads its response.
    pub async fn send(&self, request: OutboundRequest<'_>) -> Result<InboundResponse, SendError> {
        let body_limit = request.body_limit;
        self.open(request).await?.read(body_limit).await
    }

    /// Sends a request once, up to the head of its answer.
    pub(crate) async fn open(&self, request: OutboundRequest<'_>) -> Result<OpenResponse, SendError> {
        let route = Route {
            key: request.pool,
            destination: Destination::check(request.url, &self.connector.policy, request.hosts)?,
            ca_certificate: request.ca_certificate,
            deadline: request.deadline,
        };
        let message = message(request.method, request.url, &route.destination, request.headers, request.body)?;
        let (connection, response) = self.exchange(&route, message).await?;
        Ok(OpenResponse { response, connection, pool: Arc::clone(&self.pool), deadline: route.deadline })
    }

    /// Sends the message over an idle connection or a new one, up to the head of the response.
    ///
    /// The service may have closed an idle connection. Then the message is returned if, and only if, nothing of it was
    /// written, and is sent over the next connection. Anything else could execute a call twice and is an error.
    async fn exchange(
        &self,
        route: &Route<'_>,
        mut message: Request<Full<Bytes>>,
    ) -> Result<(Connection, Response<Incoming>), SendError> {
        let now = now();
        if route.deadline <= now {
            return Err(SendError::TimedOut { stage: Stage::Start });
        }
        while let Some(connection) = self.pool.take(route.key, &route.destination, route.ca_certificate, now) {
            match attempt(connection, message, route.deadline).await? {
                Attempt::Responded(connection, response) => return Ok((connection, response)),
                Attempt::Unsent(unsent) => message = unsent,
            }
        }
        let sender = self.connector.open(&route.destination, route.ca_certificate, route.key, route.deadline).await?;
        let connection = Connection::new(sender, route.key, &route.destination, route.ca_certificate);
        match attempt(connection, message, route.deadline).await? {
            Attempt::Responded(connection, response) => Ok((connection, response)),
            Attempt::Unsent(_) => Err(SendError::ConnectFailed {
                host: route.destination.host.to_owned(),
                kind: io::ErrorKind::ConnectionAborted,
            }),
        }
    }
}

/// The destination of a message and its deadline.
struct Route<'a> {
    key: PoolKey,
    destination: Destination<'a>,
    ca_certificate: Option<&'a str>,
    deadline: Instant,
}

enum Attempt {
    Responded(Connection, Response<Incoming>),
    Unsent(Request<Full<Bytes>>),
}

async fn attempt(
    mut connection: Connection,
    message: Request<Full<Bytes>>,
    deadline: Instant,
) -> Result<Attempt, SendError> {
    let sent = timeout_at(deadline, connection.sender.try_send_request(message)).await;
    match sent.map_err(|_| SendError::TimedOut { stage: Stage::Response })? {
        Ok(response) => Ok(Attempt::Responded(connection, response)),
        Err(mut error) => match error.take_message() {
            Some(unsent) => Ok(Attempt::Unsent(unsent)),
            None => Err(body::broken(&error.into_error())),
        },
    }
}

fn message(
    method: Method,
    url: &Url,
    destination: &Destination<'_>,
    mut headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, SendError> {
    if method == Method::CONNECT || method == Method::TRACE {
        return Err(SendError::ForbiddenMethod);
    }
    if let Some(name) = headers.keys().find(|name| OWN_HEADERS.contains(name)) {
        return Err(SendError::ForbiddenHeader { name: name.clone() });
    }
    let target = PathAndQuery::try_from(&url[Position::BeforePath..Position::AfterQuery]);
    headers.insert(header::HOST, host_header(url, destination)?);
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
    // A service may insist on a length where the method announces a body.
    if body.is_empty() && (method == Method::POST || method == Method::PUT || method == Method::PATCH) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    let mut message = Request::new(Full::new(body));
    *message.method_mut() = method;
    *message.uri_mut() = Uri::from(target.map_err(|_| SendError::BadTarget)?);
    *message.headers_mut() = headers;
    Ok(message)
}

fn host_header(url: &Url, destination: &Destination<'_>) -> Result<HeaderValue, SendError> {
    let value = match url.port() {
        None => HeaderValue::from_str(destination.host),
        Some(port) => HeaderValue::from_maybe_shared(format!("{}:{port}", destination.host)),
    };
    value.map_err(|_| SendError::NoHost)
}

const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("toolgate/", env!("CARGO_PKG_VERSION")));

/// Headers that route or frame a message.
const OWN_HEADERS: [HeaderName; 11] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
];
