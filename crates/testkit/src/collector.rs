//! An OpenTelemetry collector on loopback. It decodes requests with the official message definitions, which the gate
//! does not use.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
pub use opentelemetry_proto::tonic::metrics::v1::{Metric, metric};
pub use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::upstream::{Received, Reply, Upstream};

pub struct Collector {
    /// Receives the requests; a test can hold its responses back.
    pub upstream: Upstream,
}

impl Collector {
    pub fn start() -> Self {
        Self { upstream: Upstream::start(|_| Reply::text(200, "")) }
    }

    /// The value for `telemetry.otlp_endpoint`.
    pub fn url(&self) -> String {
        self.upstream.url()
    }

    /// Waits for a request with spans after the first so many requests, and returns all spans so far.
    pub fn wait_for_spans(&self, count: usize) -> Vec<Span> {
        for requests in 1.. {
            self.upstream.wait_for(requests);
            let spans = self.spans();
            if spans.len() >= count {
                return spans;
            }
        }
        Vec::new()
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<Span> {
        let requests = self.received("/v1/traces").into_iter();
        let requests =
            requests.map(|body| ExportTraceServiceRequest::decode(body.as_slice()).expect("a trace request"));
        let resources = requests.flat_map(|request| request.resource_spans).inspect(|spans| {
            let resource = attributes(&spans.resource.as_ref().expect("a resource").attributes);
            assert_eq!(resource["service.name"], "toolgate");
        });
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// The metrics of the last request with metrics.
    pub fn metrics(&self) -> Vec<Metric> {
        let Some(body) = self.received("/v1/metrics").pop() else { return Vec::new() };
        let request = ExportMetricsServiceRequest::decode(body.as_slice()).expect("a metrics request");
        let resources = request.resource_metrics.into_iter();
        resources.flat_map(|resource| resource.scope_metrics).flat_map(|scope| scope.metrics).collect()
    }

    fn received(&self, path: &str) -> Vec<Vec<u8>> {
        let about = |request: &Received| request.path() == path;
        self.upstream
            .received()
            .into_iter()
            .filter(about)
            .map(|request| {
                assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
                request.body
            })
            .collect()
    }
}

/// Attributes with text values, by name.
pub fn attributes(given: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &KeyValue| match value.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text.clone()),
        _ => None,
    };
    given.iter().filter_map(|attribute| Some((attribute.key.clone(), text(attribute)?))).collect()
}
