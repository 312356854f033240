//! Counters for Prometheus. Labels are bounded: routes, methods, statuses, codes; never an id, a name or a tenant.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use toolgate_gate::call::{CallAnswer, Denial};
use toolgate_gate::refusal::Code;

use crate::limiter::Limited;
use crate::router::App;

/// What is counted.
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Histogram,
    under_way: Gauge,
    limited: Family<ScopeLabel, Counter>,
    refused_keys: Family<CodeLabel, Counter>,
    calls: Family<CallLabels, Counter>,
    integrated: Counter,
    maintenance_failures: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabel {
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScopeLabel {
    scope: &'static str,
}

/// How a call ended: `code` is empty for a success.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    outcome: &'static str,
    code: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("toolgate"),
            requests: Family::default(),
            durations: Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0]),
            under_way: Gauge::default(),
            limited: Family::default(),
            refused_keys: Family::default(),
            calls: Family::default(),
            integrated: Counter::default(),
            maintenance_failures: Counter::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("http_requests", "Requests answered", metrics.requests.clone());
        registry.register("http_request_duration_seconds", "Time from request to answer", metrics.durations.clone());
        registry.register("http_requests_under_way", "Requests being answered now", metrics.under_way.clone());
        let limited = "Requests refused because a key or an address sent too many";
        registry.register("http_requests_limited", limited, metrics.limited.clone());
        registry.register("refused_keys", "Requests refused for their key", metrics.refused_keys.clone());
        registry.register("calls", "Calls of tools, by how they ended", metrics.calls.clone());
        registry.register("audit_events_integrated", "Events taken into the audit log", metrics.integrated.clone());
        let failures = metrics.maintenance_failures.clone();
        registry.register("maintenance_failures", "Background work that failed and will be tried again", failures);
        metrics
    }
}

impl Metrics {
    /// A key was refused.
    pub fn refused_key(&self, code: Code) {
        self.refused_keys.get_or_create(&CodeLabel { code: code.as_str() }).inc();
    }

    /// A call ended.
    pub fn called(&self, outcome: &Result<CallAnswer, Denial>) {
        let (outcome, code) = match outcome {
            Ok(answer) if answer.replayed => ("replayed", String::new()),
            Ok(answer) => match &answer.outcome.error {
                None => ("success", String::new()),
                Some(error) => ("error", error.code.clone()),
            },
            Err(denial) => ("denied", denial.refusal.code().as_str().to_owned()),
        };
        self.calls.get_or_create(&CallLabels { outcome, code }).inc();
    }

    /// Events were taken into the log.
    pub fn integrated(&self, count: u64) {
        self.integrated.inc_by(count);
    }

    /// Background work failed.
    pub fn maintenance_failed(&self) {
        self.maintenance_failures.inc();
    }
}

/// Counts a request and the time it takes.
pub async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let method = match request.method().as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "other",
    };
    app.metrics.under_way.inc();
    let begun = tokio::time::Instant::now();
    let answer = next.run(request).await;
    let took = begun.elapsed();
    app.metrics.under_way.dec();
    app.metrics.durations.observe(took.as_secs_f64());
    if let Some(limited) = answer.extensions().get::<Limited>() {
        app.metrics.limited.get_or_create(&ScopeLabel { scope: limited.scope.as_str() }).inc();
    }
    let status = answer.status().as_u16();
    tracing::debug!(method, route, status, ?took, "answered");
    app.metrics.requests.get_or_create(&RequestLabels { method, route, status }).inc();
    answer
}

/// Shows the counters.
pub async fn show(State(app): State<Arc<App>>) -> Response {
    let mut text = String::new();
    match encode(&mut text, &app.metrics.registry) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
