//! Values that a background task samples every few seconds: the ledger and the process. A scrape shows the last sample.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use toolgate_gate::ports::ledger::LedgerStatistics;
use toolgate_model::time::Timestamp;

use super::encode_counted;

#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    /// When the ledger was sampled; `None` before the first sample.
    pub(super) time: Option<Timestamp>,
    pub(super) ledger: LedgerStatistics,
    pub(super) process: ProcessFigures,
}

/// The process, by the conventional names of Prometheus.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessFigures {
    pub cpu_seconds: f64,
    pub resident_bytes: u64,
    pub virtual_bytes: u64,
    pub open_descriptors: u64,
    pub max_descriptors: u64,
    pub threads: u64,
    /// Seconds since the Unix epoch.
    pub start_seconds: f64,
}

type Shared = Arc<Mutex<Sample>>;

fn locked(sample: &Shared) -> MutexGuard<'_, Sample> {
    sample.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Metrics that begin with `toolgate_`.
#[derive(Debug)]
pub(super) struct SampledMetrics(pub(super) Shared);

/// Metrics that begin with `process_`, as those of every program.
#[derive(Debug)]
pub(super) struct ProcessMetrics(pub(super) Shared);

impl Collector for SampledMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Sample { time, ledger, .. } = locked(&self.0).clone();
        let mut build = encoder.encode_descriptor(
            "build_info",
            "Always 1, with the version as a label",
            None,
            MetricType::Gauge,
        )?;
        build.encode_family(&[("version", env!("CARGO_PKG_VERSION"))])?.encode_gauge(&1_u64)?;
        let age = match (time, ledger.oldest_open_approval) {
            (Some(now), Some(oldest)) => now.as_millis().saturating_sub(oldest.as_millis()),
            _ => 0,
        };
        let age = std::time::Duration::from_millis(u64::try_from(age).unwrap_or(0)).as_secs_f64();
        let engine = &ledger.engine;
        gauge(&mut encoder, "approvals_waiting", "Approvals that wait for a decision", ledger.open_approvals)?;
        let help = "Age of the oldest approval that waits for a decision";
        encoder.encode_descriptor("approvals_oldest_age_seconds", help, None, MetricType::Gauge)?.encode_gauge(&age)?;
        gauge(&mut encoder, "ledger_size_bytes", "Size of the ledger database", engine.bytes)?;
        gauge(&mut encoder, "ledger_queue_length", "Operations that wait for the ledger writer", engine.queued)?;
        let help = "Connections in the pool for reads";
        gauge(&mut encoder, "ledger_pool_connections", help, engine.pool_connections)?;
        let help = "Connections in the pool for reads that are in use";
        gauge(&mut encoder, "ledger_pool_connections_in_use", help, engine.pool_connections_in_use)?;
        let help = "Size of the SQLite write-ahead log";
        let mut wal = encoder.encode_descriptor("ledger_wal_size_bytes", help, None, MetricType::Gauge)?;
        if let Some(bytes) = engine.wal_bytes {
            wal.encode_gauge(&bytes)?;
        }
        let help = "Operations committed per transaction";
        let mut batches = encoder.encode_descriptor("ledger_batch_size", help, None, MetricType::Histogram)?;
        encode_counted(&mut batches, &engine.batches, as_float)
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let process = locked(&self.0).process;
        let cpu = "CPU time of the process, in user and system mode";
        encoder
            .encode_descriptor("process_cpu_seconds", cpu, None, MetricType::Counter)?
            .encode_counter::<prometheus_client::encoding::NoLabelSet, f64, f64>(&process.cpu_seconds, None)?;
        let start = "Start time of the process, in seconds since the Unix epoch";
        encoder
            .encode_descriptor("process_start_time_seconds", start, None, MetricType::Gauge)?
            .encode_gauge(&process.start_seconds)?;
        gauge(&mut encoder, "process_resident_memory_bytes", "Resident memory", process.resident_bytes)?;
        gauge(&mut encoder, "process_virtual_memory_bytes", "Virtual memory", process.virtual_bytes)?;
        gauge(&mut encoder, "process_open_fds", "Open file descriptors", process.open_descriptors)?;
        gauge(&mut encoder, "process_max_fds", "Limit on open file descriptors", process.max_descriptors)?;
        gauge(&mut encoder, "process_threads", "Threads", process.threads)
    }
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> Result<(), fmt::Error> {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
}

#[expect(clippy::cast_precision_loss, reason = "counts of operations are far below the precision of a float")]
fn as_float(value: u64) -> f64 {
    value as f64
}
