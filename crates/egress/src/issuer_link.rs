//! The way to the documents of an issuer of access tokens: its metadata and its keys. Over the guarded client, so no
//! redirect is followed and no private address is reached, except at hosts that the operator names: the issuers of
//! clusters are on private addresses.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use toolgate_gate::ports::tokens::{IssuerDocument, IssuerFailure, IssuerLink};
use url::Url;

use crate::address::AddressPolicy;
use crate::client::{GuardedClient, OutboundRequest};
use crate::pool::PoolKey;
use crate::resolver::SystemResolver;
use crate::time::deadline_after;

#[cfg(test)]
mod tests;

/// The longest document.
const BODY_LIMIT: usize = 256 * 1024;

/// A way to one issuer.
pub struct IssuerHttpLink {
    client: GuardedClient,
    /// For the hosts that may be private.
    private_client: GuardedClient,
    private_hosts: BTreeSet<String>,
    ca_certificate: Option<String>,
}

impl IssuerHttpLink {
    /// Over this client, and to these hosts wherever they are; with CAs in PEM no others are trusted.
    pub fn new(client: GuardedClient, private_hosts: BTreeSet<String>, ca_certificate: Option<String>) -> Self {
        let everywhere = vec![IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
        let resolver = std::sync::Arc::new(SystemResolver::new(4));
        let private_client = GuardedClient::new(AddressPolicy::new(everywhere), resolver).keeping(1);
        Self { client, private_client, private_hosts, ca_certificate }
    }
}

#[async_trait]
impl IssuerLink for IssuerHttpLink {
    async fn get(&self, url: &str, timeout: Duration) -> Result<IssuerDocument, IssuerFailure> {
        let url = Url::parse(url).map_err(|_| IssuerFailure("the address is not a valid URL".to_owned()))?;
        let host = url.host_str().unwrap_or_default();
        let is_private = self.private_hosts.contains(host);
        // Keys that anybody on the way could replace would let anybody in.
        if url.scheme() != "https" && !is_private {
            return Err(IssuerFailure(format!("`{host}` is not reached over https")));
        }
        let client = if is_private { &self.private_client } else { &self.client };
        let mut headers = HeaderMap::with_capacity(1);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let request = OutboundRequest {
            pool: PoolKey::Issuer,
            method: Method::GET,
            url: &url,
            headers,
            body: Bytes::new(),
            deadline: deadline_after(timeout),
            hosts: &[],
            ca_certificate: self.ca_certificate.as_deref(),
            body_limit: BODY_LIMIT,
        };
        let response = client.send(request).await.map_err(|error| IssuerFailure(error.to_string()))?;
        if response.truncated {
            return Err(IssuerFailure(format!("the document exceeds {BODY_LIMIT} bytes")));
        }
        Ok(IssuerDocument { status: response.status, body: response.body })
    }
}
