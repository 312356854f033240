//! Why a request has no response. The text comes from here, never from the service: it cannot contain a header, a
//! credential, a path or a query.

use std::fmt;
use std::io;

use http::HeaderName;
use thiserror::Error;

use crate::address::ForbiddenAddress;

/// Why a request has no response.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SendError {
    /// Neither http nor https.
    #[error("the service's URL is neither http nor https; correct the scheme of its base URL")]
    UnsupportedScheme,
    /// A name or a password before the host.
    #[error("the service's URL contains a user name or password; remove it and store it as a credential")]
    UserInfo,
    /// Nothing to connect to.
    #[error("the service's URL has no host, or has port 0; write it as https://api.example.com")]
    NoHost,
    /// Characters that a request line cannot hold.
    #[error("the path or query of the service's URL cannot be written in a request; percent-encode it")]
    BadTarget,
    /// A name that means this machine, its network or its cloud.
    #[error("`{host}` is a private host name; use a public one, or add its addresses to `egress.allow`")]
    PrivateName { host: String },
    /// A host that the credential or the grant does not admit.
    #[error("`{host}` is not among the hosts that this call may reach; extend `allowed_hosts` if it should be")]
    ForbiddenHost { host: String },
    /// An address that calls may not reach.
    #[error(transparent)]
    ForbiddenAddress(#[from] ForbiddenAddress),
    /// A method that opens a tunnel or echoes the request.
    #[error("the methods CONNECT and TRACE are not allowed for tools; correct the tool's HTTP mapping")]
    ForbiddenMethod,
    /// A header that decides how the message is framed or routed.
    #[error("the header `{name}` is set by Toolgate only; remove it from the tool's HTTP mapping")]
    ForbiddenHeader { name: HeaderName },
    #[error("`{host}` cannot be resolved; check the name and this machine's DNS")]
    Unresolvable { host: String },
    /// Too many names are being resolved.
    #[error(
        "`{host}` was not resolved: too many DNS lookups are in flight, in total or for this credential; try again, \
        or check this machine's DNS"
    )]
    ResolverBusy { host: String },
    /// The name servers are silent.
    #[error("`{host}` was not resolved in time; check this machine's DNS, then try again")]
    LookupTimedOut { host: String },
    #[error("could not connect to `{host}` ({kind}); check that the service runs and is reachable from here")]
    ConnectFailed {
        host: String,
        /// The error of the system.
        kind: io::ErrorKind,
    },
    /// The CA certificate is none.
    #[error("the credential's CA certificate cannot be read; give one or more certificates in PEM")]
    BadCertificate,
    #[error("this system has no root certificates; install its `ca-certificates`, or give the credential its own CA")]
    NoRoots,
    /// The service could not prove its identity.
    #[error("TLS with `{host}` failed: {reason}")]
    Tls {
        host: String,
        /// What went wrong and what to do.
        reason: &'static str,
    },
    #[error("the call timed out {stage}; raise the credential's timeout, or request less")]
    TimedOut { stage: Stage },
    /// The response is not valid.
    #[error("the service's response {reason}")]
    BrokenResponse { reason: &'static str },
    /// Compressed in a way that was not requested.
    #[error("the service's response is compressed in a way that Toolgate does not expand; it asked for none at all")]
    UnsupportedEncoding,
}

impl SendError {
    /// Whether the way leads where calls may not go.
    pub fn is_blocked(&self) -> bool {
        matches!(self, Self::PrivateName { .. } | Self::ForbiddenHost { .. } | Self::ForbiddenAddress(_))
    }

    /// Whether the gate has too much to do, so that the same request may succeed later.
    pub fn is_overload(&self) -> bool {
        matches!(self, Self::ResolverBusy { .. })
    }

    /// Whether the service may have seen the request. False only where not a byte of it can have been sent.
    pub fn reached_service(&self) -> bool {
        match self {
            Self::UnsupportedScheme
            | Self::UserInfo
            | Self::NoHost
            | Self::BadTarget
            | Self::PrivateName { .. }
            | Self::ForbiddenHost { .. }
            | Self::ForbiddenAddress(_)
            | Self::ForbiddenMethod
            | Self::ForbiddenHeader { .. }
            | Self::Unresolvable { .. }
            | Self::ResolverBusy { .. }
            | Self::LookupTimedOut { .. }
            | Self::ConnectFailed { .. }
            | Self::BadCertificate
            | Self::NoRoots
            | Self::Tls { .. } => false,
            Self::TimedOut { stage } => match stage {
                Stage::Start | Stage::Resolve | Stage::Connect | Stage::Tls => false,
                Stage::Response | Stage::Body => true,
            },
            Self::BrokenResponse { .. } | Self::UnsupportedEncoding => true,
        }
    }
}

/// The part of an exchange that the deadline interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Before anything was done.
    Start,
    Resolve,
    Connect,
    /// While TLS was set up.
    Tls,
    /// While the request was sent or the head of the response awaited.
    Response,
    /// While the body of the response was read.
    Body,
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Start => "before it began",
            Self::Resolve => "while the service's name was resolved",
            Self::Connect => "while connecting",
            Self::Tls => "during the TLS handshake",
            Self::Response => "before the service responded",
            Self::Body => "before the service's response was complete",
        })
    }
}
