//! OAuth2: access tokens, renewed before they expire and when the service refuses one. Renewed material is stored in
//! the vault before it is used, so that the next call finds it there.

use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout_at;
use toolgate_gate::ports::source::SourceFailure;
use toolgate_model::connection::TokenEndpoint;
use toolgate_model::secret::{Material, Secret};
use toolgate_model::time::Timestamp;

use self::exchange::{TokenExchange, TokenGrant, proxy_failure};
use super::{Adapter, OutboundCall, not_executable, rest};
use crate::body::InboundResponse;
use crate::client::GuardedClient;
use toolgate_model::redaction::Redactor;

mod exchange;
mod response;
#[cfg(test)]
mod tests;

/// Where the access token is, by preference.
const ACCESS_FIELDS: [&str; 2] = ["access_token", "token"];
const REFRESH_FIELD: &str = "refresh_token";
const CLIENT_ID_FIELD: &str = "client_id";
const CLIENT_SECRET_FIELD: &str = "client_secret";
/// The expiry of the access token in RFC 3339, written by each renewal.
const EXPIRY_FIELD: &str = "access_token_expires_at";
/// A token that expires sooner than this is renewed first: it must live until the service has read it.
const MARGIN: Duration = Duration::from_secs(30);
/// The service's word for a token that it does not take.
const UNAUTHORIZED: u16 = 401;

pub(crate) struct OAuth2;

#[async_trait]
impl Adapter for OAuth2 {
    async fn carry_out(
        &self,
        client: &GuardedClient,
        outbound: OutboundCall<'_>,
        redactor: &mut Redactor,
    ) -> Result<InboundResponse, SourceFailure> {
        let token = access_token(outbound.material);
        let Some(endpoint) = usable_endpoint(&outbound) else {
            return rest::present(client, &outbound, token.ok_or_else(no_token)?).await;
        };
        let Some(token) = token.filter(|_| !expires_soon(outbound.material, outbound.now)) else {
            return send_renewed(client, &outbound, endpoint, redactor).await;
        };
        let response = rest::present(client, &outbound, token).await?;
        if response.status != UNAUTHORIZED {
            return Ok(response);
        }
        let seen = |failure| SourceFailure { http_status: Some(UNAUTHORIZED), sent: true, ..failure };
        send_renewed(client, &outbound, endpoint, redactor).await.map_err(seen)
    }
}

/// Renews the token and sends the call with the new one. The response to that is final: if a new token is refused,
/// another one would not help.
async fn send_renewed(
    client: &GuardedClient,
    outbound: &OutboundCall<'_>,
    endpoint: &TokenEndpoint,
    redactor: &mut Redactor,
) -> Result<InboundResponse, SourceFailure> {
    let renewed = renew(client, outbound, endpoint, redactor).await?;
    // It may be another call's work, or an administrator's.
    for name in ACCESS_FIELDS.into_iter().chain([REFRESH_FIELD, CLIENT_SECRET_FIELD]) {
        if let Some(secret) = renewed.get(name) {
            redactor.add(secret);
        }
    }
    rest::present(client, outbound, access_token(&renewed).ok_or_else(no_token)?).await
}

async fn renew(
    client: &GuardedClient,
    outbound: &OutboundCall<'_>,
    endpoint: &TokenEndpoint,
    redactor: &mut Redactor,
) -> Result<Material, SourceFailure> {
    let exchange = TokenExchange::new(client, outbound, endpoint, redactor);
    let mut renewing = pin!(outbound.renewal.renew(outbound.material, &exchange));
    match timeout_at(outbound.deadline, renewing.as_mut()).await {
        Ok(renewed) => renewed,
        // INVARIANT: an exchange that has begun is completed, or the new refresh token, by then the only valid one,
        // would be lost. The exchange itself ends with the deadline; storing its result may take longer.
        Err(_) if exchange.has_begun() => renewing.await,
        Err(_) => {
            let reason = "the call timed out while another call renewed the access token; try again";
            Err(SourceFailure { timed_out: true, ..proxy_failure(reason.to_owned()) })
        }
    }
}

/// The token endpoint, if there is one and something to exchange.
fn usable_endpoint<'a>(outbound: &OutboundCall<'a>) -> Option<&'a TokenEndpoint> {
    outbound.connection.token.as_ref().filter(|endpoint| TokenGrant::of(endpoint, outbound.material).is_some())
}

fn access_token(material: &Material) -> Option<&Secret> {
    ACCESS_FIELDS.iter().find_map(|name| field(material, name))
}

/// A field, unless it is empty.
fn field<'a>(material: &'a Material, name: &str) -> Option<&'a Secret> {
    material.get(name).filter(|secret| !secret.expose().is_empty())
}

fn expires_soon(material: &Material, now: Timestamp) -> bool {
    let expiry = material.get(EXPIRY_FIELD).and_then(|text| Timestamp::parse(text.expose()).ok());
    expiry.is_some_and(|expiry| expiry <= now.plus(MARGIN))
}

fn no_token() -> SourceFailure {
    not_executable(
        "the credential has no `access_token` and nothing to obtain one with; rotate it with one, or with a \
         `refresh_token` or `client_id` and `client_secret`, and say in `metadata.token_url` where to exchange them",
    )
}
