//! The export of traces and metrics from its settings.

use std::sync::Arc;

use toolgate_egress::collector::CollectorLink;
use toolgate_model::id::ProcessId;
use toolgate_model::time::Timestamp;
use toolgate_server::operations::metrics::Metrics;

use super::StartError;
use crate::configuration::Configuration;
use crate::telemetry::{Exporter, SpanQueue};

/// The exporter of traces and metrics, with the queue of the traces.
pub(super) fn open(
    configuration: &Configuration,
    metrics: &Arc<Metrics>,
    process: ProcessId,
    now: Timestamp,
) -> Result<Option<(SpanQueue, Exporter)>, StartError> {
    let Some(settings) = &configuration.telemetry else { return Ok(None) };
    let link = CollectorLink::new(settings.endpoint.clone(), settings.token.as_ref())?;
    let (metrics, interval) = (Arc::clone(metrics), settings.metrics_interval);
    Ok(Some(Exporter::new(link, metrics, interval, &process.to_string(), now)))
}
