//! Counters for Prometheus. Labels are bounded: routes, methods, statuses, codes, hooks, guardians; never an
//! id, a tenant or a name that somebody else than the operator chose.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use toolgate_gate::call::{CallResult, Denial};
use toolgate_gate::refusal::Code;
use toolgate_model::guard::{Hook, Outcome};

use crate::accepted;
use crate::limiter::Limited;
use crate::limiter::middleware::bound;
use crate::router::App;

/// What is counted.
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Histogram,
    in_flight: Gauge,
    clock_stepped: Gauge,
    limited: Family<ScopeLabel, Counter>,
    refused_keys: Family<CodeLabel, Counter>,
    calls: Family<CallLabels, Counter>,
    hook_decisions: Family<HookLabels, Counter>,
    guardian_failures: Family<FailureLabels, Counter>,
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

/// What a runtime was told: `hook` is `none` where the question could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HookLabels {
    hook: &'static str,
    decision: &'static str,
}

/// The names of guardians come from the configuration, and so there are few.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    guardian: String,
    class: String,
    outcome: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("toolgate"),
            requests: Family::default(),
            durations: Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0]),
            in_flight: Gauge::default(),
            clock_stepped: Gauge::default(),
            limited: Family::default(),
            refused_keys: Family::default(),
            calls: Family::default(),
            hook_decisions: Family::default(),
            guardian_failures: Family::default(),
            integrated: Counter::default(),
            maintenance_failures: Counter::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("http_requests", "Requests answered", metrics.requests.clone());
        registry.register("http_request_duration_seconds", "Time from request to answer", metrics.durations.clone());
        registry.register("http_requests_in_flight", "Requests being answered now", metrics.in_flight.clone());
        let stepped = "1 while the clock is not where it should be, and nothing is ended for good by time";
        registry.register("clock_stepped", stepped, metrics.clock_stepped.clone());
        let limited = "Requests refused because a key or an address sent too many";
        registry.register("http_requests_limited", limited, metrics.limited.clone());
        registry.register("refused_keys", "Requests refused for their key", metrics.refused_keys.clone());
        registry.register("calls", "Calls of tools, by how they ended", metrics.calls.clone());
        let hooks = "Questions of other runtimes, by hook and by what they were told";
        registry.register("hook_decisions", hooks, metrics.hook_decisions.clone());
        let failed = "Guardians that gave no verdict that can be used, and what came of it";
        registry.register("guardian_failures", failed, metrics.guardian_failures.clone());
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
    pub fn called(&self, outcome: &Result<CallResult, Denial>) {
        let (outcome, code) = match outcome {
            Ok(answer) if answer.replayed => ("replayed", String::new()),
            Ok(answer) => match &answer.outcome.error {
                None => ("success", String::new()),
                Some(error) => ("error", error.code.clone()),
            },
            Err(denial) if denial.admitted => ("unknown", denial.refusal.code().as_str().to_owned()),
            Err(denial) => ("denied", denial.refusal.code().as_str().to_owned()),
        };
        self.calls.get_or_create(&CallLabels { outcome, code }).inc();
    }

    /// A runtime asked at a hook and was told this.
    pub fn hook_decided(&self, hook: Hook, decision: &'static str) {
        self.hook_decisions.get_or_create(&HookLabels { hook: hook.as_str(), decision }).inc();
    }

    /// A runtime asked what could not be read.
    pub fn hook_not_understood(&self) {
        self.hook_decisions.get_or_create(&HookLabels { hook: "none", decision: "error" }).inc();
    }

    /// A guardian gave no verdict that can be used; `open` says whether that passed for a yes.
    pub fn guardian_failed(&self, guardian: &str, class: &str, open: bool) {
        let outcome = if open { Outcome::FailedOpen } else { Outcome::FailedClosed };
        let labels =
            FailureLabels { guardian: guardian.to_owned(), class: class.to_owned(), outcome: outcome.as_str() };
        self.guardian_failures.get_or_create(&labels).inc();
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

/// Counts a request and the time it takes, also of one that the limiter refuses. One layer for both: every request pays
/// for every layer.
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
    let begun = tokio::time::Instant::now();
    let counted = Counted::new(&app.metrics.in_flight);
    let answer = bound(&app, request, next).await;
    drop(counted);
    let took = begun.elapsed();
    app.metrics.durations.observe(took.as_secs_f64());
    if let Some(limited) = answer.extensions().get::<Limited>() {
        app.metrics.limited.get_or_create(&ScopeLabel { scope: limited.scope.as_str() }).inc();
    }
    let status = answer.status().as_u16();
    tracing::debug!(method, route, status, ?took, "answered");
    app.metrics.requests.get_or_create(&RequestLabels { method, route, status }).inc();
    answer
}

/// A request in the gauge of those in flight, also where its client disconnects and it is given up.
struct Counted<'a>(&'a Gauge);

impl<'a> Counted<'a> {
    fn new(gauge: &'a Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Shows the counters.
pub async fn show(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    app.metrics.clock_stepped.set(i64::from(!app.gate.clock.is_steady()));
    let mut text = String::new();
    match encode(&mut text, &app.metrics.registry) {
        Ok(()) => {
            let plain = accepted::only_plain_text(&headers, "application/openmetrics-text");
            let openmetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            let kind = if plain { accepted::PLAIN_TEXT } else { openmetrics };
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
