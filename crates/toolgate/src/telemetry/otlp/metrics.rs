//! Metrics as messages of OTLP. Buckets of OpenMetrics count all values up to their bound, those of OTLP only the values
//! above the bound before.

use super::openmetrics::{Kind, MetricFamily, Sample};
use super::protobuf::Message;
use super::resource::attribute;

/// Field `metrics` of `ScopeMetrics`.
const METRICS: u64 = 2;
const CUMULATIVE: u64 = 2;

/// Metrics as fields of `ScopeMetrics`, with the times from which they count and at which they were read, in nanoseconds.
pub(super) fn encode(families: &[MetricFamily], started: u64, now: u64) -> Vec<u8> {
    let mut metrics = Message::default();
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        metrics.message(METRICS, |metric| encode_family(metric, family, (started, now)));
    }
    metrics.into_bytes()
}

fn encode_family(metric: &mut Message, family: &MetricFamily, times: (u64, u64)) {
    metric.text(1, &family.name);
    metric.text(2, &family.help);
    metric.text(3, unit(&family.name));
    match family.kind {
        Kind::Gauge => metric.message(5, |gauge| number_points(gauge, family, times)),
        Kind::Counter => metric.message(7, |sum| {
            number_points(sum, family, times);
            sum.number(2, CUMULATIVE);
            sum.number(3, 1);
        }),
        Kind::Histogram => metric.message(9, |histogram| {
            for points in histograms(&family.samples) {
                histogram.message(1, |point| points.encode(point, times));
            }
            histogram.number(2, CUMULATIVE);
        }),
    }
}

/// The unit, by the convention for names.
fn unit(name: &str) -> &'static str {
    match name.rsplit('_').next() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "1",
    }
}

fn number_points(of: &mut Message, family: &MetricFamily, (started, now): (u64, u64)) {
    for sample in &family.samples {
        of.message(1, |point| {
            if family.kind == Kind::Counter {
                point.fixed64(2, started);
            }
            point.fixed64(3, now);
            point.double(4, sample.value);
            attributes(point, 7, &sample.labels);
        });
    }
}

/// One histogram: the samples with the same labels.
#[derive(Default)]
struct Points<'a> {
    labels: Vec<&'a (String, String)>,
    count: f64,
    sum: f64,
    /// Bounds with the values up to each.
    buckets: Vec<(f64, f64)>,
}

fn histograms(samples: &[Sample]) -> Vec<Points<'_>> {
    let mut all: Vec<Points<'_>> = Vec::new();
    for sample in samples {
        let labels: Vec<_> = sample.labels.iter().filter(|(key, _)| key != "le").collect();
        if all.last().is_none_or(|last| last.labels != labels) {
            all.push(Points { labels, ..Points::default() });
        }
        let Some(points) = all.last_mut() else { continue };
        match sample.suffix.as_str() {
            "count" => points.count = sample.value,
            "sum" => points.sum = sample.value,
            "bucket" => {
                let bound = sample.labels.iter().find(|(key, _)| key == "le").and_then(|(_, le)| le.parse().ok());
                points.buckets.extend(bound.map(|bound| (bound, sample.value)));
            }
            _ => {}
        }
    }
    all
}

impl Points<'_> {
    fn encode(&self, point: &mut Message, (started, now): (u64, u64)) {
        point.fixed64(2, started);
        point.fixed64(3, now);
        point.fixed64(4, whole(self.count));
        point.double(5, self.sum);
        let mut before = 0;
        let counts = self.buckets.iter().map(|(_, up_to)| {
            let up_to = whole(*up_to);
            up_to.saturating_sub(std::mem::replace(&mut before, up_to))
        });
        point.packed64(6, counts);
        let bounds = self.buckets.iter().map(|(bound, _)| bound).filter(|bound| bound.is_finite());
        point.packed64(7, bounds.map(|bound| bound.to_bits()));
        for (key, value) in self.labels.iter().copied() {
            attribute(point, 9, key, value);
        }
    }
}

fn attributes(message: &mut Message, field: u64, labels: &[(String, String)]) {
    for (key, value) in labels {
        attribute(message, field, key, value);
    }
}

/// A count, which was written as an integer.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a conversion from a float saturates")]
fn whole(value: f64) -> u64 {
    value as u64
}
