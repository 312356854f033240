//! The way to the operator's telemetry collector. Its address is the operator's alone, so it may be on this machine or in a
//! private network without opening either to calls. No redirect is followed, and of a response no more than the status
//! counts.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use thiserror::Error;
use toolgate_model::secret::Secret;
use url::Url;
use zeroize::Zeroizing;

use crate::address::AddressPolicy;
use crate::client::{GuardedClient, OutboundRequest};
use crate::error::SendError;
use crate::pool::PoolKey;
use crate::resolver::SystemResolver;
use crate::time::deadline_after;

/// How much of a response is read.
const BODY_LIMIT: usize = 4 * 1024;

/// A way to one collector.
pub struct CollectorLink {
    client: GuardedClient,
    /// INVARIANT: ends with a slash.
    base: Url,
    authorization: Option<HeaderValue>,
}

/// Why something was not exported.
#[derive(Debug, Error)]
pub enum CollectorError {
    #[error("the token for the collector is not valid in a header; remove line breaks and control characters")]
    UnwritableToken,
    #[error("the collector responded with status {0}")]
    Status(u16),
    #[error(transparent)]
    Unsent(#[from] SendError),
    #[error("a path cannot be added to the address of the collector")]
    Address,
}

impl CollectorLink {
    /// To a collector at this address, with this bearer token.
    pub fn new(mut base: Url, token: Option<&Secret>) -> Result<Self, CollectorError> {
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let authorization = token.map(|token| {
            let text = Zeroizing::new(format!("Bearer {}", token.expose()));
            let mut value = HeaderValue::from_str(&text).map_err(|_| CollectorError::UnwritableToken)?;
            value.set_sensitive(true);
            Ok::<_, CollectorError>(value)
        });
        let everywhere = vec![IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
        let resolver = std::sync::Arc::new(SystemResolver::new(4));
        Ok(Self {
            client: GuardedClient::new(AddressPolicy::new(everywhere), resolver).keeping(2),
            base,
            authorization: authorization.transpose()?,
        })
    }

    /// Sends a protobuf message to a path below the address, once.
    pub async fn post(&self, path: &str, message: Vec<u8>, timeout: Duration) -> Result<(), CollectorError> {
        let url = self.base.join(path).map_err(|_| CollectorError::Address)?;
        let mut headers = HeaderMap::with_capacity(2);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        if let Some(authorization) = &self.authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        let request = OutboundRequest {
            pool: PoolKey::Collector,
            method: Method::POST,
            url: &url,
            headers,
            body: Bytes::from(message),
            deadline: deadline_after(timeout),
            hosts: &[],
            ca_certificate: None,
            body_limit: BODY_LIMIT,
        };
        match self.client.send(request).await?.status {
            200..=299 => Ok(()),
            status => Err(CollectorError::Status(status)),
        }
    }
}
