//! Typed requests: method, path, query, body, reply and stream are those that `toolgate-api` declares for the endpoint.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_api::detached::DetachedCall;
use toolgate_api::endpoint::StreamKind;
use toolgate_api::parameters::{escaped, replace_placeholder};
use toolgate_api::{Endpoint, PathParameter, RequestBody};
use zeroize::Zeroizing;

use super::events::Events;
use super::lines::Lines;
use super::{Client, ClientError, DownloadError};

/// A request to an endpoint, at first without path parameter, query and body.
pub struct TypedRequest<'a, E> {
    client: &'a Client,
    path: String,
    query: String,
    body: Option<Zeroizing<Vec<u8>>>,
    version: Option<HeaderValue>,
    endpoint: PhantomData<E>,
}

/// The outcome of a request that the gate may detach.
pub enum Outcome<T> {
    Completed(T),
    Detached(Box<DetachedCall>),
}

impl Client {
    pub fn to<E: Endpoint>(&self) -> TypedRequest<'_, E> {
        let path = E::PATH.to_owned();
        TypedRequest { client: self, path, query: String::new(), body: None, version: None, endpoint: PhantomData }
    }
}

impl<'a, E: Endpoint> TypedRequest<'a, E> {
    #[must_use]
    pub fn at(self, path: &E::Path) -> Self {
        Self { path: path.fill(E::PATH), ..self }
    }

    /// Sets the first path parameter that is not set yet to text that the user typed. The gate validates it.
    #[must_use]
    pub fn named(self, text: &str) -> Self {
        Self { path: replace_placeholder(&self.path, &escaped(text)), ..self }
    }

    #[must_use]
    pub fn query(self, query: &E::Query) -> Self {
        Self { query: query_text(query), ..self }
    }

    #[must_use]
    pub fn body(self, body: &E::Body) -> Self {
        Self { body: content(body), ..self }
    }

    /// Sets the version that the change is decided on.
    #[must_use]
    pub fn version(self, version: u64) -> Self {
        Self { version: Some(HeaderValue::from(version)), ..self }
    }

    /// Sets a body that contains secrets, as bytes that are wiped.
    #[must_use]
    pub fn secret_body(self, body: Zeroizing<Vec<u8>>) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Path and query.
    pub fn target(&self) -> String {
        format!("{}{}", self.path, self.query)
    }

    pub async fn send(self) -> Result<E::Reply, ClientError>
    where
        E::Reply: DeserializeOwned,
    {
        self.send_as().await
    }

    /// Reads the reply as another type, such as one that tolerates the reply of a newer gate.
    pub async fn send_as<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        let client = self.client;
        let (status, bytes) = self.exchange(None).await?;
        client.read(status, &bytes)
    }

    /// The reply and its status, for endpoints with several success statuses.
    pub async fn send_for_status(self) -> Result<(StatusCode, E::Reply), ClientError>
    where
        E::Reply: DeserializeOwned,
    {
        let client = self.client;
        let (status, bytes) = self.exchange(None).await?;
        Ok((status, client.read(status, &bytes)?))
    }

    /// Asks the gate to detach the work, which it may decline.
    pub async fn begin(self) -> Result<Outcome<E::Reply>, ClientError>
    where
        E::Reply: DeserializeOwned,
    {
        let client = self.client;
        let prefer = (HeaderName::from_static("prefer"), HeaderValue::from_static("respond-async"));
        let (status, bytes) = self.exchange(Some(prefer)).await?;
        Ok(match status {
            StatusCode::ACCEPTED => Outcome::Detached(client.read(status, &bytes)?),
            _ => Outcome::Completed(client.read(status, &bytes)?),
        })
    }

    /// The response as lines of JSON, one for each step.
    pub async fn lines(self) -> Result<Lines<'a, E::Item>, ClientError> {
        self.lines_as().await
    }

    /// The same, with lines of another type.
    pub async fn lines_as<T>(self) -> Result<Lines<'a, T>, ClientError> {
        let accept = HeaderValue::from_static(StreamKind::Lines.media_type());
        let client = self.client;
        let response = self.open(Some((header::ACCEPT, accept))).await?;
        Ok(Lines::new(client, response.into_body()))
    }

    /// The response as a stream of events.
    pub async fn events_as<T>(self) -> Result<Events<'a, T>, ClientError> {
        let client = self.client;
        Ok(Events::new(client, self.open(None).await?.into_body()))
    }

    /// Streams the response to a sink.
    pub async fn download(self, sink: impl FnMut(&[u8]) -> std::io::Result<()>) -> Result<(), DownloadError> {
        let client = self.client;
        client.download(self.open(None).await?.into_body(), sink).await
    }

    async fn exchange(
        self,
        header: Option<(HeaderName, HeaderValue)>,
    ) -> Result<(StatusCode, bytes::Bytes), ClientError> {
        let client = self.client;
        client
            .in_time(async {
                let response = self.open(header).await?;
                Ok((response.status(), client.collect(response.into_body()).await?))
            })
            .await
    }

    async fn open(
        self,
        header: Option<(HeaderName, HeaderValue)>,
    ) -> Result<http::Response<hyper::body::Incoming>, ClientError> {
        let version = self.version.clone().map(|version| (header::IF_MATCH, version));
        self.client.open(header.or(version), E::METHOD, &self.target(), self.body).await
    }
}

impl Client {
    fn read<T: DeserializeOwned>(&self, status: StatusCode, bytes: &[u8]) -> Result<T, ClientError> {
        // A response without content, such as 204.
        let bytes = if bytes.is_empty() { b"null" } else { bytes };
        serde_json::from_slice(bytes).map_err(|_| ClientError::UnexpectedServer { url: self.url.clone(), status })
    }
}

/// The query string with its question mark, sorted by name; empty if there are no parameters.
fn query_text(query: &impl Serialize) -> String {
    let parameters: BTreeMap<String, Value> = match serde_json::to_value(query) {
        Ok(Value::Object(members)) => members.into_iter().collect(),
        _ => BTreeMap::new(),
    };
    let mut text = String::new();
    for (name, value) in &parameters {
        text.push(if text.is_empty() { '?' } else { '&' });
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.push_str(&format!("{name}={}", escaped(&value)));
    }
    text
}

/// The body as it is sent; none if it means the same as an absent body.
fn content<B: RequestBody>(body: &B) -> Option<Zeroizing<Vec<u8>>> {
    let bytes = Zeroizing::new(serde_json::to_vec(body).unwrap_or_default());
    let absent = B::absent().and_then(|absent| serde_json::to_vec(&absent).ok());
    if absent.is_some_and(|absent| absent == *bytes) { None } else { Some(bytes) }
}

#[cfg(test)]
mod tests {
    use toolgate_api::Nothing;
    use toolgate_api::credentials::Reason;
    use toolgate_api::grants::{GrantQuery, ListGrants};
    use toolgate_api::parameters::{Cursor, Limit};
    use toolgate_api::vaults::{ShowVault, VaultRequest};
    use toolgate_model::id::VaultId;
    use toolgate_model::secret::Secret;
    use toolgate_model::text::Line;

    use super::*;

    #[test]
    fn a_path_and_a_query_are_written_as_the_endpoint_declares_them() {
        let client = Client::new("http://127.0.0.1:1", &Secret::new("k".to_owned())).unwrap();
        let id = VaultId::parse("vault_01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap();
        let shown = "/api/v1/vaults/vault_01ARZ3NDEKTSV4RRFFQ69G5FAV";
        assert_eq!(client.to::<ShowVault>().at(&id).target(), shown);
        assert_eq!(client.to::<ShowVault>().named("a/../b?c#d").target(), "/api/v1/vaults/a%2F..%2Fb%3Fc%23d");
        let query =
            GrantQuery { limit: Some(Limit(5)), cursor: Some(Cursor("a&b".to_owned())), ..GrantQuery::default() };
        assert_eq!(client.to::<ListGrants>().query(&query).target(), "/api/v1/grants?cursor=a%26b&limit=5");
        assert_eq!(client.to::<ListGrants>().query(&GrantQuery::default()).target(), "/api/v1/grants");
    }

    #[test]
    fn a_body_that_says_nothing_is_not_sent() {
        assert_eq!(content(&Nothing {}), None);
        assert_eq!(content(&Reason::default()), None);
        let reason = Reason { reason: Some(Line::parse("done").unwrap()) };
        assert_eq!(content(&reason).unwrap().as_slice(), br#"{"reason":"done"}"#);
        let vault = VaultRequest { owner_id: None, name: Line::parse("main").unwrap() };
        assert_eq!(content(&vault).unwrap().as_slice(), br#"{"name":"main"}"#);
    }
}
