//! Telemetry of calls: metrics of every call, log lines, and spans of sampled calls.

use std::sync::Arc;

use toolgate_gate::ports::telemetry::{FinishedCall, Telemetry};
use toolgate_server::operations::metrics::Metrics;

pub use self::call_log::CallLog;
pub use self::otlp::{Exporter, SpanQueue};
pub use self::process::process_figures;

mod call_log;
mod otlp;
mod process;

/// Creates metrics, log lines and spans of the calls of a gate.
pub struct CallTelemetry {
    metrics: Arc<Metrics>,
    log: CallLog,
    /// `None` where no traces are exported.
    spans: Option<SpanQueue>,
}

impl CallTelemetry {
    pub fn new(metrics: Arc<Metrics>, log: CallLog, spans: Option<SpanQueue>) -> Self {
        Self { metrics, log, spans }
    }
}

impl Telemetry for CallTelemetry {
    fn call_finished(&self, call: &FinishedCall<'_>) {
        self.metrics.called(call);
        self.log.write(call);
        if let (Some(spans), Some(traced)) = (&self.spans, call.trace.filter(|traced| traced.is_exported)) {
            spans.push(call, traced);
        }
    }
}
