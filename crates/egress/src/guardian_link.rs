//! The transport to an external guardian, over the same guarded client as every call: no redirects, bounded responses,
//! and connections are kept for the next request.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use thiserror::Error;
use toolgate_gate::ports::guardian_link::{Link, LinkFailure, LinkResponse};
use toolgate_model::secret::Secret;
use url::Url;
use zeroize::Zeroizing;

use crate::client::{GuardedClient, OutboundRequest};
use crate::error::SendError;
use crate::pool::PoolKey;
use crate::time::now;

#[cfg(test)]
mod tests;

/// How the gate authenticates to a guardian.
pub enum LinkAuthentication {
    None,
    /// By a bearer token.
    Bearer(Secret),
    /// By a header of the guardian's own.
    Header {
        name: HeaderName,
        value: Secret,
    },
}

/// Why a guardian cannot be reached with these settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LinkError {
    /// A secret that no header can hold.
    #[error("the guardian's token is not valid in a header; remove line breaks and control characters")]
    UnwritableSecret,
    /// A header that belongs to the message.
    #[error("this header is set by Toolgate only; use another one to authenticate to the guardian")]
    OwnHeader,
}

/// A way to one guardian.
pub struct GuardianLink {
    client: GuardedClient,
    url: Url,
    authentication: LinkAuthentication,
    body_limit: usize,
    ca_certificate: Option<String>,
}

impl GuardianLink {
    /// The client is used for this guardian only, so that no connection is shared with another; responses are read up
    /// to the limit; with CAs in PEM no others are trusted.
    pub fn new(
        client: GuardedClient,
        url: Url,
        authentication: LinkAuthentication,
        body_limit: usize,
        ca_certificate: Option<String>,
    ) -> Result<Self, LinkError> {
        let link = Self { client, url, authentication, body_limit, ca_certificate };
        link.headers()?;
        Ok(link)
    }

    fn headers(&self) -> Result<HeaderMap, LinkError> {
        let json = HeaderValue::from_static("application/json");
        let mut headers = HeaderMap::with_capacity(3);
        headers.insert(header::CONTENT_TYPE, json.clone());
        headers.insert(header::ACCEPT, json);
        match &self.authentication {
            LinkAuthentication::None => {}
            LinkAuthentication::Bearer(token) => {
                let bearer = Zeroizing::new(format!("Bearer {}", token.expose()));
                headers.insert(header::AUTHORIZATION, sensitive(&bearer)?);
            }
            LinkAuthentication::Header { name, value } => {
                if OWN_HEADERS.contains(name) {
                    return Err(LinkError::OwnHeader);
                }
                headers.insert(name.clone(), sensitive(value.expose())?);
            }
        }
        Ok(headers)
    }
}

#[async_trait]
impl Link for GuardianLink {
    async fn post(&self, question: Vec<u8>, timeout: Duration) -> Result<LinkResponse, LinkFailure> {
        let request = OutboundRequest {
            pool: PoolKey::Guardian,
            method: Method::POST,
            url: &self.url,
            // INVARIANT: they were validated when this link was created.
            headers: self.headers().map_err(|_| LinkFailure::Connect)?,
            body: Bytes::from(question),
            deadline: now() + timeout,
            hosts: &[],
            ca_certificate: self.ca_certificate.as_deref(),
            body_limit: self.body_limit,
        };
        let response = self.client.send(request).await.map_err(|error| failure_of(&error))?;
        if response.truncated {
            return Err(LinkFailure::Oversize);
        }
        let content_type = response.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Ok(LinkResponse { status: response.status, content_type: content_type.map(str::to_owned), body: response.body })
    }
}

fn failure_of(error: &SendError) -> LinkFailure {
    match error {
        SendError::UnsupportedScheme
        | SendError::UserInfo
        | SendError::NoHost
        | SendError::BadTarget
        | SendError::PrivateName { .. }
        | SendError::ForbiddenHost { .. }
        | SendError::ForbiddenAddress(_)
        | SendError::ForbiddenMethod
        | SendError::ForbiddenHeader { .. }
        | SendError::Unresolvable { .. }
        | SendError::ResolverBusy { .. }
        | SendError::ConnectFailed { .. } => LinkFailure::Connect,
        SendError::BadCertificate | SendError::NoRoots | SendError::Tls { .. } => LinkFailure::Tls,
        SendError::TimedOut { .. } | SendError::LookupTimedOut { .. } => LinkFailure::Timeout,
        SendError::BrokenResponse { .. } | SendError::UnsupportedEncoding => LinkFailure::Broken,
    }
}

fn sensitive(text: &str) -> Result<HeaderValue, LinkError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| LinkError::UnwritableSecret)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Headers that describe the message; the client sets those that frame or route it.
const OWN_HEADERS: [HeaderName; 5] =
    [header::CONTENT_TYPE, header::ACCEPT, header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING];
