//! Export to an OpenTelemetry collector: OTLP over HTTP with protobuf bodies. Spans wait in a bounded queue that a
//! background task empties; a call never waits for it. A collector that is slow, unreachable or hostile costs spans, which
//! are counted, and nothing else: every request has a deadline, its response is read up to a limit, and nothing is sent
//! twice.
//!
//! The messages are written by `protobuf.rs` and not by the SDK of OpenTelemetry: they are the few fields below, the SDK
//! would bring threads and queues of its own, and its metrics would be a second set of instruments beside `/metrics`. The
//! tests decode them with the official definitions.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, watch};
use toolgate_egress::collector::CollectorLink;
use toolgate_gate::ports::clock::pause;
use toolgate_gate::ports::telemetry::{FinishedCall, TracedCall};
use toolgate_model::time::Timestamp;
use toolgate_server::App;
use toolgate_server::operations::metrics::{Metrics, render};

use self::resource::Resource;

mod metrics;
mod openmetrics;
mod protobuf;
mod resource;
mod spans;
#[cfg(test)]
mod tests;

/// The maximum number of calls that wait to be exported. One takes about three kilobytes.
const QUEUE: usize = 2048;
/// The maximum number of calls per request.
const BATCH: usize = 256;
/// How long calls are collected for a request.
const GATHER: Duration = Duration::from_secs(1);
/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of the export at shutdown.
const LAST_TIMEOUT: Duration = Duration::from_secs(5);

const TRACES: &str = "traces";
const METRICS: &str = "metrics";

/// Receives the spans of sampled calls.
#[derive(Clone)]
pub struct SpanQueue {
    queue: mpsc::Sender<Vec<u8>>,
    metrics: Arc<Metrics>,
}

impl SpanQueue {
    /// Queues the spans of a call, or gives them up if the queue is full.
    pub fn push(&self, call: &FinishedCall<'_>, traced: &TracedCall) {
        if self.queue.try_send(spans::encode(call, traced)).is_err() {
            self.metrics.telemetry_dropped(TRACES, 1);
        }
    }
}

/// Sends queued spans, and the metrics, to the collector.
pub struct Exporter {
    link: CollectorLink,
    // Locked by the one task that exports; a restarted task continues with it.
    queue: Mutex<mpsc::Receiver<Vec<u8>>>,
    resource: Resource,
    /// `None` disables the export.
    pub metrics_interval: Option<Duration>,
    /// When the gate started, from which on counters count.
    started: Timestamp,
}

impl Exporter {
    pub fn new(
        link: CollectorLink,
        metrics: Arc<Metrics>,
        metrics_interval: Option<Duration>,
        instance: &str,
        started: Timestamp,
    ) -> (SpanQueue, Self) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let (queue, resource) = (Mutex::new(receiver), Resource::new(instance));
        (SpanQueue { queue: sender, metrics }, Self { link, queue, resource, metrics_interval, started })
    }

    /// Exports spans until the gate stops, and then those that are left.
    pub async fn export_spans(&self, app: &App, mut stopped: watch::Receiver<bool>, mut worked: impl FnMut()) {
        let mut queue = self.queue.lock().await;
        let mut failing = Failing::default();
        let mut batch = Vec::with_capacity(BATCH);
        while !*stopped.borrow() {
            tokio::select! {
                biased;
                _ = stopped.changed() => break,
                count = queue.recv_many(&mut batch, BATCH) => if count == 0 { return },
                () = pause(GATHER) => { worked(); continue }
            }
            tokio::select! {
                biased;
                _ = stopped.changed() => {}
                () = pause(GATHER) => {}
            }
            self.send_spans(app, &mut queue, &mut batch, &mut failing).await;
            worked();
        }
        let last = async {
            while !batch.is_empty() || !queue.is_empty() {
                self.send_spans(app, &mut queue, &mut batch, &mut failing).await;
            }
        };
        if tokio::time::timeout(LAST_TIMEOUT, last).await.is_err() {
            tracing::warn!("some spans were not exported before shutdown");
        }
    }

    /// Sends one batch, filled up from the queue.
    async fn send_spans(
        &self,
        app: &App,
        queue: &mut mpsc::Receiver<Vec<u8>>,
        batch: &mut Vec<Vec<u8>>,
        failing: &mut Failing,
    ) {
        while let (true, Ok(spans)) = (batch.len() < BATCH, queue.try_recv()) {
            batch.push(spans);
        }
        let calls = std::mem::take(batch);
        let count = u64::try_from(calls.len()).unwrap_or(u64::MAX);
        let sent = self.link.post("v1/traces", self.resource.spans(&calls), TIMEOUT).await;
        if sent.is_err() {
            app.metrics.telemetry_dropped(TRACES, count);
        }
        failing.note(TRACES, sent.err().map(|error| error.to_string()));
    }

    /// Exports metrics until the gate stops, and then once more.
    pub async fn export_metrics(
        &self,
        app: &App,
        interval: Duration,
        mut stopped: watch::Receiver<bool>,
        mut worked: impl FnMut(),
    ) {
        let mut failing = Failing::default();
        loop {
            let stops = tokio::select! {
                biased;
                _ = stopped.changed() => true,
                () = pause(interval) => false,
            };
            // The sender was dropped or signals the end.
            let body = render(app).ok().map(|text| self.metrics_request(&text, app.gate.clock.now()));
            if let Some(body) = body {
                let sent = self.link.post("v1/metrics", body, TIMEOUT).await;
                if sent.is_err() {
                    app.metrics.telemetry_dropped(METRICS, 1);
                }
                failing.note(METRICS, sent.err().map(|error| error.to_string()));
            }
            worked();
            if stops {
                return;
            }
        }
    }

    fn metrics_request(&self, text: &str, now: Timestamp) -> Vec<u8> {
        let families = openmetrics::read(text);
        self.resource.metrics(&metrics::encode(&families, nanoseconds(self.started), nanoseconds(now)))
    }
}

/// Logs when an export begins to fail and when it works again.
#[derive(Default)]
struct Failing(bool);

impl Failing {
    fn note(&mut self, signal: &'static str, error: Option<String>) {
        match error {
            None if std::mem::take(&mut self.0) => tracing::info!(signal, "the export to the collector works again"),
            Some(error) if !std::mem::replace(&mut self.0, true) => {
                tracing::warn!(signal, error, "the export to the collector failed; unsent data is dropped");
            }
            _ => {}
        }
    }
}

/// Nanoseconds since the Unix epoch.
fn nanoseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(0).saturating_mul(1_000_000)
}
