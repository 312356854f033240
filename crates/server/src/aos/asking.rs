//! The caller of a hook request. A key is needed as everywhere under `/v1`, and refused in the same envelope.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use toolgate_gate::Caller;
use toolgate_gate::ports::ledger::Freshness;
use toolgate_gate::refusal::Refusal;
use toolgate_model::principal::PrincipalId;

use crate::body::Nothing;
use crate::caller::{identify, peer};
use crate::openwop::error::Flat;
use crate::parameters;
use crate::router::App;

/// A runtime that has shown its key.
pub(super) struct Asking {
    pub(super) caller: Caller,
    /// The agent, if the headers name another one than the caller.
    pub(super) agent: Option<PrincipalId>,
    pub(super) address: IpAddr,
    /// Errors in the query, reported as JSON-RPC, since the key was valid.
    pub(super) query: Result<(), Refusal>,
}

impl FromRequestParts<Arc<App>> for Asking {
    type Rejection = Flat;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Flat> {
        // The newest state: unlike a call, most hook requests are not checked again before the response.
        let (caller, agent) = identify(parts, app, Freshness::Newest).await?;
        let agent = agent.filter(|agent| agent != caller.id());
        let query = parameters::query(&parts.uri).map(|Nothing {}| ());
        Ok(Self { caller, agent, address: peer(&parts.extensions)?.address, query })
    }
}
