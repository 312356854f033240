//! Notices: signed messages to the operator's own address, over the same guarded client as every call. The response
//! only tells whether it arrived.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use thiserror::Error;
use toolgate_model::time::Timestamp;
use url::Url;

use crate::client::{GuardedClient, OutboundRequest};
use crate::error::SendError;
use crate::pool::PoolKey;
use crate::standard_webhooks::SignatureKey;
use crate::time::deadline_after;

#[cfg(test)]
mod tests;

/// The timeout of an exchange.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How much of a response is read: enough to reuse the connection after a short one.
const BODY_LIMIT: usize = 4 * 1024;

/// Sends notices to one address.
pub struct Notifier {
    client: GuardedClient,
    url: Url,
    key: Arc<SignatureKey>,
}

#[derive(Debug, Clone, Copy)]
pub struct Notice<'a> {
    /// Its id, the same each time that it is sent.
    pub id: &'a str,
    pub now: Timestamp,
    pub body: &'a str,
}

/// Why a notice did not arrive.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoticeError {
    /// The response is not a success.
    #[error("the response had status {0}")]
    Status(u16),
    /// There was no response.
    #[error(transparent)]
    Unanswered(#[from] SendError),
    /// It is not valid in headers.
    #[error("the id of the message is not valid in a header")]
    Unwritable,
}

impl Notifier {
    /// To this address, signed with this key.
    pub fn new(client: GuardedClient, url: Url, key: Arc<SignatureKey>) -> Self {
        Self { client, url, key }
    }

    /// Sends a notice once. Only a status from 200 to 299 means that it arrived; a redirect is not followed.
    pub async fn send(&self, notice: Notice<'_>) -> Result<(), NoticeError> {
        let timestamp = notice.now.as_millis().div_euclid(1000).to_string();
        let signature = self.key.signature(notice.id, &timestamp, notice.body);
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let signed = [
            ("webhook-id", notice.id),
            ("webhook-timestamp", timestamp.as_str()),
            ("webhook-signature", signature.as_str()),
        ];
        for (name, value) in signed {
            let value = HeaderValue::from_str(value).map_err(|_| NoticeError::Unwritable)?;
            headers.insert(HeaderName::from_static(name), value);
        }
        let request = OutboundRequest {
            pool: PoolKey::Notices,
            method: Method::POST,
            url: &self.url,
            headers,
            body: Bytes::copy_from_slice(notice.body.as_bytes()),
            deadline: deadline_after(TIMEOUT),
            hosts: &[],
            ca_certificate: None,
            body_limit: BODY_LIMIT,
        };
        match self.client.send(request).await?.status {
            200..=299 => Ok(()),
            status => Err(NoticeError::Status(status)),
        }
    }
}
