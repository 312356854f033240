//! The listeners and the limits of clients.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_server::Limits;
use toolgate_server::listener::{ClientCertificates, ForwardedHeader, TlsSettings, TrustedProxies};

use super::ConfigurationError;
use super::keys::{self, Key};
use super::resolve::Resolved;

/// How clients reach the gate.
pub struct NetworkSettings {
    pub listen: SocketAddr,
    pub unix_socket: Option<PathBuf>,
    /// TLS, or plain HTTP.
    pub tls: Option<TlsSettings>,
    /// The proxies that are trusted for client addresses.
    pub proxies: TrustedProxies,
    /// Whether connections begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    pub limits: Limits,
    /// The maximum number of requests of one key in flight.
    pub requests_of_key: usize,
    /// The maximum memory for the bodies of all requests, in bytes.
    pub body_memory: usize,
    /// The share of one key in it.
    pub body_memory_of_key: usize,
    /// How long to keep serving after a request to stop.
    pub lame_duck: Duration,
}

pub(super) fn read(resolved: &mut Resolved) -> Result<NetworkSettings, ConfigurationError> {
    let listen = resolved.address(&keys::LISTEN)?;
    let tls = tls(resolved)?;
    if tls.is_none() && !listen.ip().is_loopback() && !resolved.switch(&keys::ALLOW_PLAIN_HTTP) {
        return Err(ConfigurationError::one(format!(
            "server.listen is {listen}, where keys would travel in clear text: set server.tls.certificate and \
             server.tls.key, or server.allow_plain_http = true behind a proxy that terminates TLS"
        )));
    }
    let proxies = TrustedProxies {
        networks: super::networks(resolved, &keys::TRUSTED_PROXIES)?,
        header: match resolved.text(&keys::FORWARDED_HEADER)?.as_str() {
            "forwarded" => ForwardedHeader::Forwarded,
            _ => ForwardedHeader::XForwardedFor,
        },
    };
    let proxy_protocol = resolved.switch(&keys::PROXY_PROTOCOL);
    if proxy_protocol && proxies.networks.is_empty() {
        return Err(ConfigurationError::one(
            "server.proxy_protocol is on, but no proxy is trusted: set server.trusted_proxies",
        ));
    }
    let limits = Limits {
        connections: resolved.count(&keys::MAX_CONNECTIONS)?,
        connections_of_address: resolved.count(&keys::MAX_CONNECTIONS_PER_ADDRESS)?,
        head_timeout: resolved.seconds(&keys::HEADER_TIMEOUT)?,
        idle_timeout: resolved.seconds(&keys::IDLE_TIMEOUT)?,
        drain_timeout: resolved.seconds(&keys::DRAIN)?,
    };
    let mebibytes = |count: usize| count.saturating_mul(1024 * 1024);
    let body_memory = mebibytes(resolved.count(&keys::BODY_MEMORY)?);
    let body_memory_of_key = mebibytes(resolved.count(&keys::BODY_MEMORY_PER_KEY)?);
    if body_memory_of_key > body_memory {
        return Err(ConfigurationError::one(
            "server.body_memory_per_key_mebibytes is more than server.body_memory_mebibytes; lower it to at most that \
            value",
        ));
    }
    Ok(NetworkSettings {
        listen,
        unix_socket: resolved.optional_path(&keys::UNIX_SOCKET),
        tls,
        proxies,
        proxy_protocol,
        limits,
        requests_of_key: resolved.count(&keys::MAX_REQUESTS_PER_KEY)?,
        body_memory,
        body_memory_of_key,
        lame_duck: resolved.seconds(&keys::LAME_DUCK)?,
    })
}

fn tls(resolved: &mut Resolved) -> Result<Option<TlsSettings>, ConfigurationError> {
    let tls12 = resolved.text(&keys::TLS_MINIMUM_VERSION)? == "1.2";
    let required = resolved.text(&keys::TLS_CLIENT_CERTIFICATES)? == "required";
    let mut file = |key: &Key| resolved.optional_path(key);
    let clients = file(&keys::TLS_CLIENT_CA).map(|ca| ClientCertificates { ca, required });
    if required && clients.is_none() {
        return Err(ConfigurationError::one(
            "server.tls.client_certificates is \"required\", but no CA is set: set server.tls.client_ca",
        ));
    }
    match (file(&keys::TLS_CERTIFICATE), file(&keys::TLS_KEY)) {
        (Some(certificate), Some(key)) => Ok(Some(TlsSettings { certificate, key, tls12, clients })),
        (None, None) if clients.is_some() => Err(ConfigurationError::one(
            "server.tls.client_ca needs TLS: set server.tls.certificate and server.tls.key",
        )),
        (None, None) => Ok(None),
        // Half of it would leave the operator believing that there is TLS.
        _ => Err(ConfigurationError::one("server.tls needs both certificate and key; set both, or neither")),
    }
}
