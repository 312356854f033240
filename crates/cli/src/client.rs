//! The client of a running gate: HTTP or HTTPS, one request at a time. The only place of this crate that opens a connection.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client as HttpClient, Error as HttpError};
use hyper_util::rt::TokioExecutor;
use thiserror::Error;
use toolgate_model::secret::Secret;
use zeroize::Zeroizing;

mod events;
mod lines;
mod mcp;
mod refused;
mod typed;

pub use self::events::Events;
pub use self::lines::{call_outcome, refused};
pub use self::mcp::{MCP_PATH, McpResponse, McpStream};
pub use self::refused::Refused;
pub use self::typed::{Outcome, TypedRequest};

/// The default address of a gate.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7300";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The slowest request revokes a very large tree of grants.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);
/// The largest response that is held in memory. Exports are streamed.
const RESPONSE_LIMIT: usize = 64 * 1024 * 1024;

/// Why a request has no usable response.
#[derive(Debug, Error)]
pub enum ClientError {
    #[error("{} [{}]", .body.message(), .body.code())]
    Refused { status: StatusCode, body: Box<Refused> },
    #[error("{url} responded with {status}, which is not a response of a Toolgate gate; check --url or TOOLGATE_URL")]
    UnexpectedServer { url: String, status: StatusCode },
    #[error("the response from {url} is incomplete: {reason}")]
    BrokenOff { url: String, reason: String },
    #[error(
        "could not connect to {url}: {reason}; start a gate with `toolgate serve`, or set its URL with --url or TOOLGATE_URL"
    )]
    Unreachable { url: String, reason: String },
    #[error("could not set up TLS: {0}")]
    Tls(String),
    #[error(
        "the key contains characters that are not valid in a key; set TOOLGATE_TOKEN again or run `toolgate login`"
    )]
    Token,
    #[error("`{0}` is not the URL of a gate; use http://HOST:PORT or https://HOST")]
    Url(String),
}

impl ClientError {
    /// Whether the request may succeed when it is repeated later.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::BrokenOff { .. } | Self::Unreachable { .. } => true,
            Self::Refused { status, .. } | Self::UnexpectedServer { status, .. } => {
                status.is_server_error() || status.as_u16() == 429
            }
            Self::Tls(_) | Self::Token | Self::Url(_) => false,
        }
    }
}

pub struct Client {
    http: HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: String,
    authorization: HeaderValue,
    timeout: Duration,
}

impl Client {
    pub fn new(url: &str, token: &Secret) -> Result<Self, ClientError> {
        let url = checked_url(url)?;
        let text = Zeroizing::new(format!("Bearer {}", token.expose()));
        let mut authorization = HeaderValue::from_str(&text).map_err(|_| ClientError::Token)?;
        authorization.set_sensitive(true);
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let tls = hyper_rustls::HttpsConnectorBuilder::new()
            .with_provider_and_platform_verifier(rustls::crypto::aws_lc_rs::default_provider())
            .map_err(|error| ClientError::Tls(error.to_string()))?;
        let connector = tls.https_or_http().enable_http1().wrap_connector(tcp);
        let http = HttpClient::builder(TokioExecutor::new()).build(connector);
        Ok(Self { http, url, authorization, timeout: RESPONSE_TIMEOUT })
    }

    /// Sets the timeout of responses, for requests that wait for an approver.
    #[must_use]
    pub fn waiting(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    async fn download(
        &self,
        mut body: Incoming,
        mut sink: impl FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), DownloadError> {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.broken_off(&error.to_string()))?;
            if let Some(data) = frame.data_ref() {
                sink(data).map_err(DownloadError::Sink)?;
            }
        }
        Ok(())
    }

    /// Sends a request and returns a successful response, whose body is not read yet.
    async fn open(
        &self,
        more: Option<(HeaderName, HeaderValue)>,
        method: Method,
        target: &str,
        body: Option<Zeroizing<Vec<u8>>>,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{target}", self.url))
            .header(header::AUTHORIZATION, self.authorization.clone())
            .header(header::USER_AGENT, concat!("toolgate/", env!("CARGO_PKG_VERSION")));
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some((name, value)) = more {
            request = request.header(name, value);
        }
        let body = body.map(Bytes::from_owner).unwrap_or_default();
        let request = request.body(Full::new(body)).map_err(|_| ClientError::Url(self.url.clone()))?;
        let sent = self.in_time(async { self.http.request(request).await.map_err(|error| self.unreachable(&error)) });
        let response = sent.await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let bytes = self.in_time(self.collect(response.into_body())).await?;
        match serde_json::from_slice::<Refused>(&bytes) {
            Ok(body) => Err(ClientError::Refused { status, body: Box::new(body) }),
            Err(_) => Err(ClientError::UnexpectedServer { url: self.url.clone(), status }),
        }
    }

    async fn collect(&self, body: Incoming) -> Result<Bytes, ClientError> {
        let collected = Limited::new(body, RESPONSE_LIMIT).collect().await;
        collected.map(http_body_util::Collected::to_bytes).map_err(|error| self.broken_off(&error.to_string()))
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
        match tokio::time::timeout(self.timeout, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.broken_off("it timed out")),
        }
    }

    fn unreachable(&self, error: &HttpError) -> ClientError {
        // Only the innermost cause is specific: connection refused, unknown name, expired certificate.
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        if error.is_connect() {
            ClientError::Unreachable { url: self.url.clone(), reason: cause.to_string() }
        } else {
            self.broken_off(&cause.to_string())
        }
    }

    /// The error for a response that ended early.
    pub fn broken_off(&self, reason: &str) -> ClientError {
        ClientError::BrokenOff { url: self.url.clone(), reason: reason.to_owned() }
    }
}

#[derive(Debug, Error)]
pub enum DownloadError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The sink failed.
    #[error("{0}")]
    Sink(std::io::Error),
}

/// Whether a key sent to this URL crosses a network unencrypted.
pub fn is_exposed(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let local = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    uri.scheme_str() == Some("http") && !local
}

/// Validates a URL and removes a trailing slash.
pub fn checked_url(url: &str) -> Result<String, ClientError> {
    let refused = || ClientError::Url(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| refused())?;
    let known = matches!(uri.scheme_str(), Some("http" | "https"));
    // A user name and password in the URL would appear in messages.
    let plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@')) && uri.query().is_none();
    if known && plain { Ok(url.trim_end_matches('/').to_owned()) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_gates_are_told_from_others() {
        assert_eq!(checked_url("http://127.0.0.1:7300/").unwrap(), "http://127.0.0.1:7300");
        assert_eq!(checked_url("https://gate.example/base").unwrap(), "https://gate.example/base");
        for bad in ["", "gate.example", "ftp://gate.example", "http://", "http://ann:geheim@gate", "http://gate/?a=b"] {
            assert!(checked_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_in_the_clear_is_noticed() {
        for (url, exposed) in [
            ("http://127.0.0.1:7300", false),
            ("http://[::1]:7300", false),
            ("http://localhost:7300", false),
            ("https://gate.example", false),
            ("http://gate.example", true),
            ("http://10.0.0.1:7300", true),
        ] {
            assert_eq!(is_exposed(url), exposed, "{url}");
        }
    }
}
