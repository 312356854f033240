//! The caller of a request: the key in its headers, shown to the gate. What else stands in the query is read along with
//! it, so that no handler can forget that somebody asked for something it does not know.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{Extensions, HeaderMap, header};
use serde::de::DeserializeOwned;
use toolgate_gate::Caller;
use toolgate_gate::ports::ledger::Freshness;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::principal::PrincipalId;

use crate::body::Nothing;
use crate::limiter::Stranger;
use crate::openintent::error::Denied;
use crate::parameters;
use crate::router::App;

/// The other end of the connection; put into each request by the listener.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// A request without parameters whose caller the gate has identified. A handler that takes this, or [`Asked`], cannot be
/// reached without a key.
pub struct Identified(pub Caller);

/// A request with parameters in its query, read strictly after the caller was identified.
pub struct Asked<T>(pub Caller, pub T);

/// A request that is a call of a tool. What it rests on is checked again when the call is admitted, so its caller may be
/// identified by what was read some moments ago.
pub struct Calling {
    /// Who calls.
    pub caller: Caller,
    /// For whom, where the headers say so.
    pub agent: Option<PrincipalId>,
    /// From where.
    pub address: IpAddr,
}

impl FromRequestParts<Arc<App>> for Calling {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Denied> {
        // Whether the caller may act for the agent is for the path to say, which writes a refusal down.
        let (caller, agent) = identify(parts, app, Freshness::Recent).await?;
        let Nothing {} = parameters::query(&parts.uri)?;
        // The SDK names itself in the header of every request: that says nothing about for whom this one is.
        let agent = agent.filter(|agent| agent != caller.id());
        Ok(Self { caller, agent, address: peer(&parts.extensions)?.ip() })
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
        let (caller, agent) = identify(parts, app, Freshness::Newest).await?;
        if let Some(agent) = agent {
            caller.require_acting_for(&agent)?;
        }
        Ok(Self(caller, parameters::query(&parts.uri)?))
    }
}

/// Finds out who asks, and for whom they say they do.
pub(crate) async fn identify(
    parts: &mut Parts,
    app: &App,
    freshness: Freshness,
) -> Result<(Caller, Option<PrincipalId>), Refusal> {
    let presented = presented_key(&parts.headers)?;
    let source = peer(&parts.extensions)?.ip();
    let caller = app.gate.identify(presented, source, freshness).await.inspect_err(|refusal| {
        app.metrics.refused_key(refusal.code());
    })?;
    if let Some(stranger) = parts.extensions.remove::<Stranger>() {
        stranger.accepted();
    }
    let agent = single(&parts.headers, "x-agent-id")?.map(PrincipalId::parse).transpose();
    Ok((caller, agent.map_err(|_| invalid_header("X-Agent-ID must be an agent's id"))?))
}

/// The other end of the connection that a request came by.
pub(crate) fn peer(extensions: &Extensions) -> Result<SocketAddr, Refusal> {
    let peer = extensions.get::<Peer>().map(|Peer(address)| *address);
    peer.ok_or_else(|| Refusal::new(Code::Internal, "the connection has no address"))
}

/// The key in the headers, which nobody has checked.
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

/// A header that may stand once: with two, a proxy in front and we might each believe another.
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
