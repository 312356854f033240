//! The exchange at the token endpoint (RFC 6749 §4.4, §6): a refresh token, or the client's own id and secret, for a new
//! access token.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use toolgate_gate::ports::source::{Exchange, FailureKind, SourceFailure};
use toolgate_model::connection::{TokenEndpoint, TokenGrantType};
use toolgate_model::secret::{Material, Secret};
use toolgate_model::time::Timestamp;
use url::form_urlencoded::{Serializer, byte_serialize};
use zeroize::Zeroizing;

use super::response::{self, TokenError, Tokens};
use super::{ACCESS_FIELDS, CLIENT_ID_FIELD, CLIENT_SECRET_FIELD, EXPIRY_FIELD, REFRESH_FIELD, field};
use crate::adapter::{OutboundCall, failure, secret_header};
use crate::client::{GuardedClient, OutboundRequest};
use toolgate_model::redaction::Redactor;

/// How much of the endpoint's response is read.
const RESPONSE_LIMIT: usize = 64 * 1024;

/// One exchange, on behalf of one call and within its time.
pub(super) struct TokenExchange<'a> {
    client: &'a GuardedClient,
    outbound: &'a OutboundCall<'a>,
    endpoint: &'a TokenEndpoint,
    /// Receives every token before it is used.
    redactor: Mutex<&'a mut Redactor>,
    has_begun: AtomicBool,
}

#[derive(Clone, Copy)]
pub(super) enum TokenGrant<'a> {
    /// The client's own id and secret.
    ClientCredentials,
    RefreshToken(&'a Secret),
}

/// The place of the client secret in the request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientPlace {
    Header,
    Form,
}

impl<'a> TokenExchange<'a> {
    pub(super) fn new(
        client: &'a GuardedClient,
        outbound: &'a OutboundCall<'a>,
        endpoint: &'a TokenEndpoint,
        redactor: &'a mut Redactor,
    ) -> Self {
        Self { client, outbound, endpoint, redactor: Mutex::new(redactor), has_begun: AtomicBool::new(false) }
    }

    /// Whether a request may already have been sent to the endpoint.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Sends one request, with the client secret in this place. The outer failure concerns the connection to the
    /// endpoint.
    async fn ask(
        &self,
        material: &Material,
        grant: TokenGrant<'_>,
        place: ClientPlace,
    ) -> Result<Result<Tokens, TokenError>, SourceFailure> {
        let connection = self.outbound.connection;
        // A grant restricts the hosts of its tool. The token endpoint is a property of the credential.
        let own_hosts = connection.allowed_hosts.as_ref();
        let request = OutboundRequest {
            pool: self.outbound.pool,
            method: Method::POST,
            url: &self.endpoint.url,
            headers: headers(material, place)?,
            body: form(self.endpoint, material, grant, place),
            deadline: self.outbound.deadline,
            hosts: own_hosts.as_slice(),
            ca_certificate: connection.ca_certificate.as_deref(),
            body_limit: RESPONSE_LIMIT,
        };
        let response = self.client.send(request).await.map_err(|error| SourceFailure {
            reason: format!("the token endpoint returned no access token: {error}"),
            // The tool's own service saw nothing of this.
            sent: false,
            ..failure(&error)
        })?;
        Ok(response::read(response, &mut self.redactor.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[async_trait]
impl Exchange for TokenExchange<'_> {
    async fn exchange(&self, current: &Material) -> Result<Material, SourceFailure> {
        self.has_begun.store(true, Ordering::Relaxed);
        let grant = TokenGrant::of(self.endpoint, current).ok_or_else(super::no_token)?;
        let mut outcome = self.ask(current, grant, ClientPlace::Header).await?;
        // RFC 6749 §2.3.1 requires every endpoint to accept the header. Some read only the form, and do not find the
        // client there.
        if client_secret(current).is_some() && outcome.as_ref().is_err_and(TokenError::is_about_the_client) {
            outcome = self.ask(current, grant, ClientPlace::Form).await?;
        }
        let tokens = outcome.map_err(|error| proxy_failure(error.to_string()))?;
        Ok(renewed(current, grant, tokens, self.outbound.now))
    }
}

impl<'a> TokenGrant<'a> {
    /// What this material can exchange at the endpoint: a refresh token before the client's own credentials, unless the
    /// endpoint's settings say which.
    pub(super) fn of(endpoint: &TokenEndpoint, material: &'a Material) -> Option<Self> {
        let refresh_token = || field(material, REFRESH_FIELD).map(Self::RefreshToken);
        let client = || client_secret(material).map(|_| Self::ClientCredentials);
        match endpoint.grant_type {
            Some(TokenGrantType::RefreshToken) => refresh_token(),
            Some(TokenGrantType::ClientCredentials) => client(),
            None => refresh_token().or_else(client),
        }
    }
}

/// The failure if the endpoint returned no token and the tool's service received nothing.
pub(super) fn proxy_failure(reason: String) -> SourceFailure {
    SourceFailure::not_sent(FailureKind::Proxy, reason)
}

/// The client's id and secret, where it has both.
fn client_secret(material: &Material) -> Option<(&str, &str)> {
    let text = |name| field(material, name).map(Secret::expose);
    text(CLIENT_ID_FIELD).zip(text(CLIENT_SECRET_FIELD))
}

fn headers(material: &Material, place: ClientPlace) -> Result<HeaderMap, SourceFailure> {
    let mut headers = HeaderMap::with_capacity(6);
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    if let (ClientPlace::Header, Some((id, secret))) = (place, client_secret(material)) {
        let mut pair = Zeroizing::new(String::with_capacity(3 * (id.len() + secret.len()) + 1));
        pair.extend(byte_serialize(id.as_bytes()));
        pair.push(':');
        pair.extend(byte_serialize(secret.as_bytes()));
        let encoded = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
        let (name, value) = secret_header("authorization", &Zeroizing::new(format!("Basic {}", *encoded)))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn form(endpoint: &TokenEndpoint, material: &Material, grant: TokenGrant<'_>, place: ClientPlace) -> Bytes {
    let mut fields = match grant {
        TokenGrant::ClientCredentials => vec![("grant_type", "client_credentials")],
        TokenGrant::RefreshToken(token) => vec![("grant_type", "refresh_token"), (REFRESH_FIELD, token.expose())],
    };
    fields.extend(endpoint.scope.as_deref().map(|scope| ("scope", scope)));
    match (client_secret(material), place) {
        (Some(_), ClientPlace::Header) => {}
        (Some((id, secret)), ClientPlace::Form) => {
            fields.extend([(CLIENT_ID_FIELD, id), (CLIENT_SECRET_FIELD, secret)]);
        }
        // A public client has no secret but still identifies itself.
        (None, _) => fields.extend(field(material, CLIENT_ID_FIELD).map(|id| (CLIENT_ID_FIELD, id.expose()))),
    }
    // Grown once: a reallocation would leave an unwiped copy behind. Escaping at most triples a byte.
    let bound = fields.iter().map(|(name, value)| 3 * (name.len() + value.len()) + 2).sum();
    let written = Serializer::new(String::with_capacity(bound)).extend_pairs(fields).finish();
    Bytes::from_owner(Zeroizing::new(written.into_bytes()))
}

/// The current material with the new tokens in place of the old ones.
fn renewed(current: &Material, grant: TokenGrant<'_>, tokens: Tokens, now: Timestamp) -> Material {
    let mut material = Material::new();
    let [usual, other] = ACCESS_FIELDS;
    let name = if field(current, usual).is_none() && field(current, other).is_some() { other } else { usual };
    material.insert(name.to_owned(), tokens.access);
    // A client that renews with its own secret would be stuck with a refresh token once that has expired.
    if let (TokenGrant::RefreshToken(_), Some(refresh)) = (grant, tokens.refresh) {
        material.insert(REFRESH_FIELD.to_owned(), refresh);
    }
    if let Some(lifetime) = tokens.lifetime {
        material.insert(EXPIRY_FIELD.to_owned(), Secret::new(now.plus(lifetime).to_string()));
    }
    // Values inserted above stay; the old expiry does not apply to the new token.
    for (name, secret) in current.iter().filter(|(name, _)| *name != EXPIRY_FIELD) {
        material.insert(name.to_owned(), Secret::new(secret.expose().to_owned()));
    }
    material
}
