//! Webhooks: the call as a signed message to one address. The signature is over the very bytes that are sent, and once
//! more together with an id and a time, by which a receiver recognises a message that is played again.

use async_trait::async_trait;
use aws_lc_rs::hmac;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::{Map, json};
use toolgate_gate::ports::source::SourceFailure;
use toolgate_model::connection::AuthPlacement;
use toolgate_model::secret::Secret;
use url::Url;

use super::{Adapter, OutboundCall, first_field, not_executable};
use crate::body::InboundResponse;
use crate::client::GuardedClient;
use crate::standard_webhooks::{SignatureKey, SignatureKeyError, encoded_part};
use toolgate_model::redaction::Redactor;

#[cfg(test)]
mod tests;

pub(crate) struct Webhook;

#[async_trait]
impl Adapter for Webhook {
    async fn carry_out(
        &self,
        client: &GuardedClient,
        outbound: OutboundCall<'_>,
        redactor: &mut Redactor,
    ) -> Result<InboundResponse, SourceFailure> {
        let keys = Keys::of(first_field(outbound.material, &["signing_secret", "secret"])?, redactor)?;
        let id = outbound.invocation.to_string();
        let message = json!({
            "tool_name": outbound.tool.as_str(),
            "parameters": outbound.parameters,
            "timestamp": seconds(outbound.now.as_millis()),
            "invocation_id": id,
        });
        let body = message.to_string();
        let timestamp = outbound.now.as_millis().div_euclid(1000).to_string();
        let mut headers = outbound.headers()?;
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        sign(&outbound, &keys, &id, &timestamp, &body, &mut headers)?;
        outbound.exchange(client, Method::POST, address(&outbound), headers, Bytes::from(body)).await
    }
}

/// One secret as the key of two signatures.
struct Keys {
    /// For the signature of the protocol's reference: the text as it is.
    plain: hmac::Key,
    /// For Standard Webhooks: the decoded key.
    standard: SignatureKey,
}

impl Keys {
    fn of(secret: &Secret, redactor: &mut Redactor) -> Result<Self, SourceFailure> {
        if let Some(encoded) = encoded_part(secret) {
            // The text without the prefix is equivalent to the key.
            redactor.add(&Secret::new(encoded.to_owned()));
        }
        let standard = SignatureKey::of(secret).map_err(|error| match error {
            SignatureKeyError::Empty => not_executable("the credential's signing secret is empty; rotate it with one"),
            SignatureKeyError::NotBase64 => not_executable(
                "the credential's signing secret begins with `whsec_`, but the rest is not base64; rotate it",
            ),
        })?;
        Ok(Self { plain: hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes()), standard })
    }
}

/// Adds the signatures and the headers that they cover.
fn sign(
    outbound: &OutboundCall<'_>,
    keys: &Keys,
    id: &str,
    timestamp: &str,
    body: &str,
    headers: &mut HeaderMap,
) -> Result<(), SourceFailure> {
    let plain: String =
        hmac::sign(&keys.plain, body.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    for (name, value) in [
        ("x-openintent-signature", format!("sha256={plain}")),
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp.to_owned()),
        ("webhook-signature", keys.standard.signature(id, timestamp, body)),
    ] {
        if (AuthPlacement::Header { name: name.to_owned(), prefix: None }).is_taken_in(outbound.request) {
            return Err(not_executable(format!(
                "the tool sets the header `{name}`, which is for the signature; remove it from the tool's HTTP mapping"
            )));
        }
        let value =
            HeaderValue::from_str(&value).map_err(|_| not_executable("the signature is not valid in a header"))?;
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(())
}

/// The URL of the message: the base URL for all tools of one credential, except for tools with their own path.
fn address<'a>(outbound: &OutboundCall<'a>) -> &'a Url {
    let connection = outbound.connection;
    let Some(base) = connection.base_url.as_ref().filter(|_| !connection.endpoints.contains_key(outbound.tool)) else {
        return &outbound.request.url;
    };
    // A registered tool may also have its own path. Without one its request was rendered in the default way.
    let default = connection.endpoint(outbound.tool).render(base, &Map::new());
    let is_default = default.is_ok_and(|default| default.url == outbound.request.url);
    if is_default { base.as_url() } else { &outbound.request.url }
}

/// Seconds since 1970 with a fraction, as the protocol's reference writes them.
fn seconds(millis: i64) -> f64 {
    // Exact for every valid time: that takes 48 of the 53 bits.
    millis as f64 / 1000.0
}
