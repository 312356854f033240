//! The caller of a request, identified by the gate from the key in its headers. The query is parsed along with it, so
//! that no handler can ignore an unknown parameter.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{Extensions, HeaderMap, header};
use serde::de::DeserializeOwned;
use toolgate_gate::Caller;
use toolgate_gate::ports::ledger::Freshness;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_gate::request_context::RequestContext;
use toolgate_model::certificate::CertificateName;
use toolgate_model::key::{KeyDigest, digest_of};
use toolgate_model::principal::PrincipalId;

use crate::body::Nothing;
use crate::limiter::UnverifiedKey;
use crate::listener::client_certificate::VerifiedCertificate;
use crate::listener::slots::Slot;
use crate::openintent::error::Denied;
use crate::parameters;
use crate::router::App;

/// The client of a request; put into each by the listener.
#[derive(Clone)]
pub struct Peer {
    /// The address of the connection, or the one that a trusted proxy sends.
    pub address: IpAddr,
    slot: Option<Arc<Slot>>,
    /// The client's own certificate on this connection.
    pub(crate) certificate: Option<Arc<VerifiedCertificate>>,
    /// The request; `None` until its head was read.
    pub(crate) request: Option<RequestContext>,
}

/// The unverified credential of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Credential<'a> {
    /// The key in its headers.
    Key(&'a str),
    /// The client certificate of its connection, if there is no key.
    Certificate(&'a CertificateName),
    /// The subject of an access token that was verified before.
    Subject(KeyDigest),
}

impl<'a> Credential<'a> {
    /// The credential of a request; headers without a single key are refused later, with the reason.
    pub(crate) fn of(headers: &'a HeaderMap, peer: &'a Peer) -> Option<Self> {
        let key = presented_key(headers).ok()?;
        key.map(Self::Key).or_else(|| peer.certificate().map(Self::Certificate))
    }

    pub(crate) fn digest(self) -> KeyDigest {
        match self {
            Self::Key(key) => digest_of(key),
            Self::Certificate(name) => name.digest(),
            Self::Subject(digest) => digest,
        }
    }
}

impl Peer {
    pub(crate) fn new(address: IpAddr, slot: Arc<Slot>) -> Self {
        Self { address, slot: Some(slot), certificate: None, request: None }
    }

    /// One without a connection.
    #[cfg(test)]
    pub(crate) fn at(address: IpAddr) -> Self {
        Self { address, slot: None, certificate: None, request: None }
    }

    fn certificate(&self) -> Option<&CertificateName> {
        self.certificate.as_ref().map(|certificate| certificate.name())
    }

    /// Whether only probes are served on its connection.
    pub(crate) fn is_reserved(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| slot.is_reserved())
    }

    /// A key on its connection was verified.
    fn verified(&self) {
        if let Some(slot) = &self.slot {
            slot.verified();
        }
    }
}

/// A request without parameters whose caller the gate has identified. A handler that takes this, or [`Asked`], cannot
/// be reached without a key.
pub struct Identified(pub Caller);

/// A request with parameters in its query, read strictly after the caller was identified.
pub struct Asked<T>(pub Caller, pub T);

/// A request that is a call of a tool. The admission checks everything again, so its caller may be identified from a
/// recent read.
pub struct Calling {
    pub caller: Caller,
    /// The agent, if the headers name one.
    pub agent: Option<PrincipalId>,
    pub address: IpAddr,
}

impl FromRequestParts<Arc<App>> for Calling {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Denied> {
        // The pipeline decides whether the caller may act for the agent, and records a refusal.
        let (caller, agent) = identify(parts, app, Freshness::Recent).await?;
        let Nothing {} = parameters::query(&parts.uri)?;
        // The SDK names itself in the header of every request: that says nothing about the agent of this one.
        let agent = agent.filter(|agent| agent != caller.id());
        Ok(Self { caller, agent, address: peer(&parts.extensions)?.address })
    }
}

impl FromRequestParts<Arc<App>> for Identified {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Denied> {
        let Asked(caller, Nothing {}) = Asked::from_request_parts(parts, app).await?;
        Ok(Self(caller))
    }
}

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Asked<T> {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Denied> {
        let caller = identify_acting(parts, app).await?;
        Ok(Self(caller, parameters::query(&parts.uri)?))
    }
}

/// The caller of a request, which may act for the agent that its headers name.
pub(crate) async fn identify_acting(parts: &mut Parts, app: &App) -> Result<Caller, Refusal> {
    let (caller, agent) = identify(parts, app, Freshness::Newest).await?;
    if let Some(agent) = agent {
        caller.require_acting_for(&agent)?;
    }
    Ok(caller)
}

/// Identifies the caller, and the agent that it claims to act for.
pub(crate) async fn identify(
    parts: &mut Parts,
    app: &App,
    freshness: Freshness,
) -> Result<(Caller, Option<PrincipalId>), Refusal> {
    let presented = presented_key(&parts.headers)?;
    let source = peer(&parts.extensions)?;
    let identified = app.gate.authenticator.identify_client(presented, source.certificate(), source.address, freshness);
    let caller = identified.await.inspect_err(|refusal| app.metrics.refused_key(refusal.code()))?;
    source.verified();
    if let Some(unverified_key) = parts.extensions.remove::<UnverifiedKey>() {
        unverified_key.accepted_as(presented.and_then(|presented| app.gate.authenticator.subject_of(presented)));
    }
    let agent = single(&parts.headers, "x-agent-id")?.map(PrincipalId::parse).transpose();
    Ok((caller, agent.map_err(|_| invalid_header("X-Agent-ID must be an agent's id"))?))
}

/// The client of a request.
pub(crate) fn peer(extensions: &Extensions) -> Result<&Peer, Refusal> {
    extensions.get::<Peer>().ok_or_else(|| Refusal::new(Code::Internal, "the connection has no address"))
}

/// The unverified key in the headers.
pub(crate) fn presented_key(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let bearer = match single(headers, header::AUTHORIZATION.as_str())? {
        None => None,
        Some(value) => {
            let key = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
            let key = key.map(|(_, key)| key.trim()).filter(|key| !key.is_empty());
            Some(key.ok_or_else(|| {
                Refusal::new(Code::Unauthenticated, "write the header as `Authorization: Bearer KEY`")
            })?)
        }
    };
    let plain = single(headers, "x-api-key")?;
    match (bearer, plain) {
        (Some(bearer), Some(plain)) if bearer != plain => {
            Err(Refusal::new(Code::Unauthenticated, "Authorization and X-API-Key carry different keys; send one"))
        }
        (bearer, plain) => Ok(bearer.or(plain)),
    }
}

/// A header that may appear once: with two, a proxy in front and this gate might each use another.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(invalid_header(&format!("the header {name} is given more than once")));
    }
    first
        .map(|value| value.to_str().map_err(|_| invalid_header(&format!("the header {name} is not plain text"))))
        .transpose()
}

fn invalid_header(reason: &str) -> Refusal {
    Refusal::new(Code::InvalidField, reason)
}
