//! Helpers for the adapter tests: an outbound call, and a vault with one shelf.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{Mutex, Notify, Semaphore};
use toolgate_gate::ports::source::Exchange;
use toolgate_model::id::CredentialId;
use toolgate_model::trace_context::TraceParent;
use toolgate_testkit::upstream::{Reply, Upstream};

use super::*;
use crate::address::AddressPolicy;
use crate::body::DEFAULT_BODY_LIMIT;
use crate::resolver::{LookupError, Resolve};
use crate::time::deadline_after;

/// The time of every call: 2026-02-08T10:00:00.250Z.
pub(super) const NOW: i64 = 1_770_544_800_250;

/// A call of the tool `files.list`, and how its service is reached.
pub(super) struct Fixture {
    pub(super) connection: Connection,
    pub(super) placement: AuthPlacement,
    pub(super) tool: ToolName,
    pub(super) parameters: Value,
    pub(super) request: RenderedRequest,
    pub(super) timeout: Duration,
}

impl Fixture {
    /// From the metadata of a credential.
    pub(super) fn new(metadata: Value) -> Self {
        let connection = Connection::from_metadata(metadata.as_object().unwrap()).unwrap();
        let tool = ToolName::parse("files.list").unwrap();
        let parameters = json!({"folder": "années", "limit": 3});
        let base = connection.base_url.as_ref().unwrap();
        let request = connection.endpoint(&tool).render(base, parameters.as_object().unwrap()).unwrap();
        let placement = AuthPlacement::Header { name: "Authorization".to_owned(), prefix: Some("Bearer".to_owned()) };
        Self { connection, placement, tool, parameters, request, timeout: Duration::from_secs(60) }
    }

    pub(super) fn outbound<'a>(&'a self, material: &'a Material, renewal: &'a dyn Renewal) -> OutboundCall<'a> {
        OutboundCall {
            body_limit: DEFAULT_BODY_LIMIT,
            invocation: InvocationId::new(now(), [7; 10]),
            pool: CredentialId::new(now(), [1; 10]).into(),
            auth_type: AuthType::OAuth2Token,
            connection: &self.connection,
            placement: &self.placement,
            tool: &self.tool,
            parameters: &self.parameters,
            request: &self.request,
            hosts: &[],
            deadline: deadline_after(self.timeout),
            now: now(),
            material,
            renewal,
            traced: None,
            more_headers: &[],
            events: None,
        }
    }
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_millis(NOW).unwrap()
}

/// Stores renewed material, one renewal at a time, as the gate does.
pub(super) struct Shelf {
    current: Mutex<Material>,
    exchanges: AtomicUsize,
    /// Notified of each successful exchange before its result is stored.
    pub(super) exchanged: Notify,
    /// Without a permit nothing is stored.
    pub(super) keeping: Semaphore,
}

impl Shelf {
    pub(super) fn new(material: Material) -> Self {
        Self {
            current: Mutex::new(material),
            exchanges: AtomicUsize::new(0),
            exchanged: Notify::new(),
            keeping: Semaphore::new(Semaphore::MAX_PERMITS),
        }
    }

    pub(super) async fn current(&self) -> Material {
        copy(&*self.current.lock().await)
    }

    pub(super) async fn kept(&self, name: &str) -> Option<String> {
        self.current.lock().await.get(name).map(|secret| secret.expose().to_owned())
    }

    /// The number of exchanges that have begun.
    pub(super) fn exchanges(&self) -> usize {
        self.exchanges.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Renewal for Shelf {
    async fn renew(&self, stale: &Material, exchange: &dyn Exchange) -> Result<Material, SourceFailure> {
        let mut current = self.current.lock().await;
        if *current.to_plaintext() != *stale.to_plaintext() {
            return Ok(copy(&current));
        }
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        let renewed = exchange.exchange(&current).await?;
        self.exchanged.notify_one();
        self.keeping.acquire().await.unwrap().forget();
        *current = copy(&renewed);
        Ok(renewed)
    }
}

/// Material with these fields.
pub(super) fn material(fields: &[(&str, &str)]) -> Material {
    let mut material = Material::new();
    for (name, value) in fields {
        assert!(material.insert((*name).to_owned(), Secret::new((*value).to_owned())));
    }
    material
}

pub(super) fn copy(original: &Material) -> Material {
    Material::from_plaintext(&original.to_plaintext()).unwrap()
}

/// A client to which every name means this machine, which it may reach.
pub(super) fn local_client() -> GuardedClient {
    GuardedClient::new(AddressPolicy::new(vec!["127.0.0.1/32".parse().unwrap()]), Arc::new(Loopback))
}

struct Loopback;

#[async_trait]
impl Resolve for Loopback {
    async fn resolve(&self, _: &str, _: PoolKey) -> Result<Vec<IpAddr>, LookupError> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }
}

#[tokio::test]
async fn a_credential_takes_the_place_of_a_header_of_the_same_name() {
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let mut fixture = Fixture::new(json!({"base_url": upstream.url()}));
    fixture.request.headers.push(("authorization".to_owned(), "Bearer of the agent".to_owned()));
    let shelf = Shelf::new(Material::new());
    let material = material(&[("api_key", "the-key")]);
    let outbound = fixture.outbound(&material, &shelf);
    let mut redactor = Redactor::new(&material);
    Rest.carry_out(&local_client(), outbound, &mut redactor).await.unwrap();
    let received = upstream.received().remove(0);
    let sent: Vec<_> = received.headers.iter().filter(|(name, _)| name == "authorization").collect();
    assert_eq!(sent, [&("authorization".to_owned(), "Bearer the-key".to_owned())]);
}

fn traced(state: Option<&str>) -> TracedCall {
    let context = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    TracedCall { context, parent: None, state: state.map(Into::into), is_exported: true }
}

#[test]
fn a_service_is_told_the_trace_of_the_call() {
    let mut headers = HeaderMap::new();
    add_trace(&mut headers, None);
    assert!(headers.is_empty());
    add_trace(&mut headers, Some(&traced(Some("vendor=1"))));
    assert_eq!(headers["traceparent"], "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    assert_eq!(headers["tracestate"], "vendor=1");
}

#[test]
fn a_traceparent_of_the_request_itself_wins_with_its_state() {
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", HeaderValue::from_static("own"));
    headers.insert("tracestate", HeaderValue::from_static("own=1"));
    add_trace(&mut headers, Some(&traced(Some("vendor=1"))));
    assert_eq!((&headers["traceparent"], &headers["tracestate"]), (&"own".parse().unwrap(), &"own=1".parse().unwrap()));

    headers.remove("traceparent");
    add_trace(&mut headers, Some(&traced(None)));
    assert!(!headers.contains_key("tracestate"), "a state belongs to its parent");
}
