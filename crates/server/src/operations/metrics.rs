//! Metrics for Prometheus. Labels are bounded: routes, methods, statuses, codes, stages, hooks, guardians; never an id,
//! a tenant or a name that the operator did not choose. What costs more than reading a number is sampled by a
//! background task, so that a scrape costs the same whatever the size of the ledger.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use toolgate_gate::distribution::Counted as CountedValues;
use toolgate_gate::ports::clock::{Clock, SystemClock};
use toolgate_gate::ports::ledger::LedgerStatistics;
use toolgate_gate::ports::telemetry::FinishedCall;
use toolgate_gate::refusal::Code;
use toolgate_model::guard::{Hook, Outcome};
use toolgate_model::time::Timestamp;

use self::calls::CallMetrics;
pub use self::sampled::ProcessFigures;
use self::sampled::{ProcessMetrics, Sample, SampledMetrics};
use crate::accepted;
use crate::caller::Peer;
use crate::limiter::Limited;
use crate::limiter::middleware::bound;
use crate::router::App;

mod calls;
mod sampled;

/// Bounds of histograms of requests and guardians, in seconds.
const BOUNDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Histogram,
    in_flight: Gauge,
    clock_stepped: Gauge,
    limited: Family<ScopeLabel, Counter>,
    connections: OpenConnections,
    refused_keys: Family<CodeLabel, Counter>,
    calls: Arc<CallMetrics>,
    calls_in_flight: Gauge,
    hook_decisions: Family<HookLabels, Counter>,
    guardian_failures: Family<FailureLabels, Counter>,
    guardian_durations: Family<GuardianLabel, Histogram>,
    integrated: Counter,
    integration_lag: Gauge<f64, AtomicU64>,
    /// When the last integration began that has integrated everything before, by the monotonic clock.
    integrated_at: AtomicU64,
    maintenance_failures: Counter,
    dropped: Family<SignalLabel, Counter>,
    sample: Arc<Mutex<Sample>>,
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

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GuardianLabel {
    guardian: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SignalLabel {
    signal: &'static str,
}

/// `hook` is `none` if the request could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HookLabels {
    hook: &'static str,
    decision: &'static str,
}

/// The names of guardians come from the configuration, so there are few.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    guardian: String,
    class: String,
    outcome: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            durations: Histogram::new(BOUNDS),
            in_flight: Gauge::default(),
            clock_stepped: Gauge::default(),
            limited: Family::default(),
            connections: OpenConnections::default(),
            refused_keys: Family::default(),
            calls: Arc::default(),
            calls_in_flight: Gauge::default(),
            hook_decisions: Family::default(),
            guardian_failures: Family::default(),
            guardian_durations: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            integrated: Counter::default(),
            integration_lag: Gauge::default(),
            integrated_at: AtomicU64::new(SystemClock.monotonic_nanos()),
            maintenance_failures: Counter::default(),
            dropped: Family::default(),
            sample: Arc::default(),
        };
        metrics.registry.register_collector(Box::new(ProcessMetrics(Arc::clone(&metrics.sample))));
        let registry = metrics.registry.sub_registry_with_prefix("toolgate");
        registry.register("http_requests", "Completed HTTP requests", metrics.requests.clone());
        registry.register("http_request_duration_seconds", "Time from request to response", metrics.durations.clone());
        registry.register("http_requests_in_flight", "Requests in flight", metrics.in_flight.clone());
        let stepped = "1 while the system clock is not trusted and nothing expires permanently";
        registry.register("clock_stepped", stepped, metrics.clock_stepped.clone());
        let limited = "Requests refused by the rate limit of a key or an address";
        registry.register("http_requests_limited", limited, metrics.limited.clone());
        registry.register("refused_keys", "Requests refused because of their key", metrics.refused_keys.clone());
        registry.register_collector(Box::new(Arc::clone(&metrics.calls)));
        registry.register_collector(Box::new(SampledMetrics(Arc::clone(&metrics.sample))));
        let in_flight = "Calls that have been admitted and have not settled";
        registry.register("calls_in_flight", in_flight, metrics.calls_in_flight.clone());
        registry.register("connections", "Open client connections", metrics.connections.0.clone());
        let hooks = "Hook requests of other runtimes, by hook and decision";
        registry.register("hook_decisions", hooks, metrics.hook_decisions.clone());
        let failed = "Consultations without a usable verdict of a guardian, by consequence";
        registry.register("guardian_failures", failed, metrics.guardian_failures.clone());
        let durations = metrics.guardian_durations.clone();
        registry.register(
            "guardian_duration_seconds",
            "Duration of guardian consultations, failures included",
            durations,
        );
        registry.register(
            "audit_events_integrated",
            "Events integrated into the audit log",
            metrics.integrated.clone(),
        );
        let lag = "Time since the start of the last integration that integrated all events before it";
        registry.register("audit_integration_lag_seconds", lag, metrics.integration_lag.clone());
        let dropped = "Spans and metric exports dropped because the collector was slow or unreachable";
        registry.register("telemetry_dropped", dropped, metrics.dropped.clone());
        let failures = metrics.maintenance_failures.clone();
        registry.register("maintenance_failures", "Failed runs of background tasks, which are retried", failures);
        metrics
    }
}

impl Metrics {
    /// A key was refused.
    pub fn refused_key(&self, code: Code) {
        self.refused_keys.get_or_create(&CodeLabel { code: code.as_str() }).inc();
    }

    /// A call has finished.
    pub fn called(&self, call: &FinishedCall<'_>) {
        self.calls.count(call);
    }

    /// A hook request got this decision.
    pub fn hook_decided(&self, hook: Hook, decision: &'static str) {
        self.hook_decisions.get_or_create(&HookLabels { hook: hook.as_str(), decision }).inc();
    }

    /// A hook request could not be parsed.
    pub fn hook_not_understood(&self) {
        self.hook_decisions.get_or_create(&HookLabels { hook: "none", decision: "error" }).inc();
    }

    /// A guardian returned no usable verdict; `open` says whether that counted as allowed.
    pub fn guardian_failed(&self, guardian: &str, class: &str, open: bool) {
        let outcome = if open { Outcome::FailedOpen } else { Outcome::FailedClosed };
        let labels =
            FailureLabels { guardian: guardian.to_owned(), class: class.to_owned(), outcome: outcome.as_str() };
        self.guardian_failures.get_or_create(&labels).inc();
    }

    /// A guardian was consulted for so long.
    pub fn guardian_consulted(&self, guardian: &str, latency: Duration) {
        let labels = GuardianLabel { guardian: guardian.to_owned() };
        self.guardian_durations.get_or_create(&labels).observe(latency.as_secs_f64());
    }

    /// An integration that began at this time of the monotonic clock has integrated so many events, and all before it.
    pub fn integrated(&self, count: u64, begun: u64) {
        self.integrated.inc_by(count);
        self.integrated_at.fetch_max(begun, Ordering::Relaxed);
    }

    /// So many spans, or one export of metrics, were given up.
    pub fn telemetry_dropped(&self, signal: &'static str, count: u64) {
        self.dropped.get_or_create(&SignalLabel { signal }).inc_by(count);
    }

    /// A background task has sampled the process and, if it could be read, the ledger.
    pub fn sampled(&self, time: Timestamp, process: ProcessFigures, ledger: Option<LedgerStatistics>) {
        let mut sample = self.sample.lock().unwrap_or_else(PoisonError::into_inner);
        sample.process = process;
        if let Some(ledger) = ledger {
            (sample.time, sample.ledger) = (Some(time), ledger);
        }
    }

    /// The gauge that a listener counts its connections in.
    pub fn connections(&self) -> OpenConnections {
        self.connections.clone()
    }

    pub fn maintenance_failed(&self) {
        self.maintenance_failures.inc();
    }
}

/// Counts a request and its duration, including those that the limiter refuses, and adds the request id to all log
/// lines in between. One layer for all of this: every request pays for every layer.
pub async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match request.extensions().get::<Peer>().and_then(|peer| peer.request.clone()) {
        Some(context) => context.scope(counted(&app, request, next)).await,
        None => counted(&app, request, next).await,
    }
}

async fn counted(app: &App, request: Request, next: Next) -> Response {
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
    let in_flight = Counted::new(&app.metrics.in_flight);
    let response = bound(app, request, next).await;
    drop(in_flight);
    let took = begun.elapsed();
    app.metrics.durations.observe(took.as_secs_f64());
    if let Some(limited) = response.extensions().get::<Limited>() {
        app.metrics.limited.get_or_create(&ScopeLabel { scope: limited.scope.as_str() }).inc();
    }
    let status = response.status().as_u16();
    tracing::debug!(method, route, status, ?took, "request finished");
    app.metrics.requests.get_or_create(&RequestLabels { method, route, status }).inc();
    response
}

/// The gauge of open connections.
#[derive(Debug, Clone, Default)]
pub struct OpenConnections(Gauge);

impl OpenConnections {
    /// One more, until it is dropped.
    pub(crate) fn one(&self) -> Counted {
        Counted::new(&self.0)
    }
}

/// One in a gauge, until it is dropped: also where its client disconnects and it is given up.
pub(crate) struct Counted(Gauge);

impl Counted {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// All metrics as OpenMetrics text.
pub fn render(app: &App) -> Result<String, std::fmt::Error> {
    let metrics = &app.metrics;
    metrics.clock_stepped.set(i64::from(!app.gate.clock.is_steady()));
    metrics.calls_in_flight.set(i64::try_from(app.gate.pipeline.in_flight()).unwrap_or(i64::MAX));
    let since = app.gate.clock.monotonic_nanos().saturating_sub(metrics.integrated_at.load(Ordering::Relaxed));
    metrics.integration_lag.set(Duration::from_nanos(since).as_secs_f64());
    let mut text = String::new();
    encode(&mut text, &metrics.registry)?;
    Ok(text)
}

pub async fn show(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    match render(&app) {
        Ok(text) => {
            let plain = accepted::only_plain_text(&headers, "application/openmetrics-text");
            let openmetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            let (kind, text) = if plain { (accepted::PLAIN_TEXT, classic(&text)) } else { (openmetrics, text) };
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The older text format of Prometheus, in which the name of a counter ends with `_total` in its description too.
fn classic(text: &str) -> String {
    let mut classic = String::with_capacity(text.len() + 1024);
    let mut help = None;
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|described| described.split_once(' '))
        {
            let end = if kind == "counter" { "_total" } else { "" };
            if let Some((_, help)) = help.take() {
                classic.extend(["# HELP ", name, end, " ", help, "\n"]);
            }
            classic.extend(["# TYPE ", name, end, " ", kind, "\n"]);
        } else if line != "# EOF" {
            classic.extend([line, "\n"]);
        }
    }
    classic
}

/// Writes a histogram of integers, each multiplied by a unit.
fn encode_counted(
    encoder: &mut MetricEncoder<'_>,
    counted: &CountedValues,
    unit: impl Fn(u64) -> f64,
) -> Result<(), std::fmt::Error> {
    let buckets = counted.buckets.iter().map(|(bound, count)| (unit(*bound), *count));
    let buckets: Vec<(f64, u64)> = buckets.chain([(f64::INFINITY, counted.beyond)]).collect();
    encoder.encode_histogram::<NoLabelSet>(unit(counted.sum), counted.count(), &buckets, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_format_describes_counters_by_their_full_names() {
        let text = "# HELP a_b Help, with words.\n# TYPE a_b counter\na_b_total{x=\"1\"} 2\n\
                    # HELP c Other.\n# TYPE c gauge\nc 1\n# EOF\n";
        let expected = "# HELP a_b_total Help, with words.\n# TYPE a_b_total counter\na_b_total{x=\"1\"} 2\n\
                        # HELP c Other.\n# TYPE c gauge\nc 1\n";
        assert_eq!(classic(text), expected);
    }

    #[test]
    fn the_lag_of_the_log_never_goes_back_to_an_earlier_integration() {
        let metrics = Metrics::default();
        metrics.integrated(3, u64::MAX - 1);
        metrics.integrated(0, 7);
        assert_eq!((metrics.integrated.get(), metrics.integrated_at.load(Ordering::Relaxed)), (3, u64::MAX - 1));
    }
}
