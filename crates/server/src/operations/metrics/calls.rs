//! Metrics of calls, from the reports of the pipeline: counts by outcome, and histograms of the whole call, of its
//! stages and of its waits. An observation takes no lock and allocates nothing.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use toolgate_gate::call::Wait;
use toolgate_gate::distribution::Distribution;
use toolgate_gate::ports::telemetry::{FinishedAs, FinishedCall};
use toolgate_gate::refusal::Stage;

use super::encode_counted;

/// Bounds in nanoseconds: from a tenth of a millisecond, the most that a stage without waiting takes, to ten minutes,
/// which an approver may take.
const BOUNDS: [u64; 17] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    10_000_000_000,
    60_000_000_000,
    600_000_000_000,
];

type Durations = Distribution<{ BOUNDS.len() }>;

/// In the order of their labels.
const OUTCOMES: [FinishedAs; 5] =
    [FinishedAs::Success, FinishedAs::Error, FinishedAs::Replayed, FinishedAs::Denied, FinishedAs::Unknown];

/// How a call ended: `code` is empty for a success.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    outcome: &'static str,
    code: String,
}

#[derive(Debug)]
pub(super) struct CallMetrics {
    calls: Family<CallLabels, Counter>,
    outcomes: [Durations; OUTCOMES.len()],
    stages: [Durations; Stage::ALL.len()],
    waits: [Durations; Wait::ALL.len()],
}

impl Default for CallMetrics {
    fn default() -> Self {
        Self {
            calls: Family::default(),
            outcomes: [const { Distribution::new(&BOUNDS) }; OUTCOMES.len()],
            stages: [const { Distribution::new(&BOUNDS) }; Stage::ALL.len()],
            waits: [const { Distribution::new(&BOUNDS) }; Wait::ALL.len()],
        }
    }
}

impl CallMetrics {
    pub(super) fn count(&self, call: &FinishedCall<'_>) {
        let labels = CallLabels { outcome: call.outcome.as_str(), code: call.code.unwrap_or_default().to_owned() };
        self.calls.get_or_create(&labels).inc();
        let Some(times) = call.times else { return };
        add(self.outcomes.get(call.outcome as usize), times.total());
        for time in times.stages() {
            add(self.stages.get(time.stage as usize), time.spent);
        }
        for (wait, waited) in times.waits() {
            add(self.waits.get(wait as usize), waited);
        }
    }
}

fn add(durations: Option<&Durations>, duration: std::time::Duration) {
    if let Some(durations) = durations {
        durations.add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }
}

impl Collector for CallMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Tool calls, by outcome";
        self.calls.encode(encoder.encode_descriptor("calls", help, None, MetricType::Counter)?)?;
        let outcomes = OUTCOMES.map(FinishedAs::as_str);
        let help = "Duration of calls in the gate, waits included";
        histogram(&mut encoder, ("call_duration_seconds", help), "outcome", &outcomes, &self.outcomes)?;
        let stages = Stage::ALL.map(Stage::as_str);
        let help = "Time that calls spent in a stage of the pipeline";
        histogram(&mut encoder, ("call_stage_duration_seconds", help), "stage", &stages, &self.stages)?;
        let waits = Wait::ALL.map(Wait::as_str);
        let help = "Time that calls waited within a stage, for an approver or for the commit of the ledger";
        histogram(&mut encoder, ("call_wait_duration_seconds", help), "wait", &waits, &self.waits)
    }
}

fn histogram(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    label: &'static str,
    values: &[&'static str],
    durations: &[Durations],
) -> Result<(), fmt::Error> {
    let mut encoder = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (value, durations) in values.iter().zip(durations) {
        let counted = durations.counted();
        encode_counted(&mut encoder.encode_family(&[(label, *value)])?, &counted, seconds)?;
    }
    Ok(())
}

fn seconds(nanoseconds: u64) -> f64 {
    std::time::Duration::from_nanos(nanoseconds).as_secs_f64()
}
