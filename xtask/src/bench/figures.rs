//! Figures of loads: medians, ratios by round, and the comparison with targets.

use super::gate::subject::Sample;

/// One figure of a sample.
pub type Pick = fn(&Sample) -> f64;
pub const RATE: Pick = |sample| sample.figures.rate;
pub const P50: Pick = |sample| sample.figures.p50;
pub const P99: Pick = |sample| sample.figures.p99;
pub const PROCESSOR: Pick = |sample| sample.processor;

/// The limit of a target.
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}
use Bound::{AtLeast, AtMost};

/// A target with the result. A missed target is not a failure: the machine may be busy.
pub fn target(what: &str, reached: f64, bound: Bound) -> String {
    let (word, limit, met) = match bound {
        AtMost(limit) => ("at most", limit, reached <= limit),
        AtLeast(limit) => ("at least", limit, reached >= limit),
    };
    let verdict = if met { "met" } else { "MISSED" };
    format!("  {verdict:<6}  {what}: {reached:.2}, {word} {limit}")
}

pub fn middle(samples: &[Sample], pick: Pick) -> f64 {
    percentile(&samples.iter().map(pick).collect::<Vec<_>>(), 50)
}

/// Per round, so that other load on the machine affects both alike.
pub fn ratio(samples: &[Sample], beside: &[Sample], pick: Pick) -> f64 {
    by_round(samples, beside, |sample, other| pick(sample) / pick(other))
}

/// The median over the rounds of what `compare` says of the two samples of a round.
pub fn by_round(samples: &[Sample], beside: &[Sample], compare: impl Fn(&Sample, &Sample) -> f64) -> f64 {
    let compared = samples.iter().zip(beside).map(|(sample, other)| compare(sample, other));
    percentile(&compared.collect::<Vec<_>>(), 50)
}

/// The given percentile; NaN without values.
pub fn percentile(values: &[f64], hundredths: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() * hundredths / 100).copied().unwrap_or(f64::NAN)
}

pub fn micros(time: f64) -> String {
    format!("{time:.0} us")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_from_sorted_values() {
        let values: Vec<f64> = (0..100).rev().map(f64::from).collect();
        assert_eq!((percentile(&values, 50), percentile(&values, 99)), (50.0, 99.0));
        assert_eq!(percentile(&[3.0, 1.0, 2.0], 50), 2.0);
        assert!(percentile(&[], 50).is_nan());
    }

    #[test]
    fn a_target_says_whether_it_was_met() {
        assert!(target("x", 1.0, AtMost(1.0)).contains("met"));
        assert!(target("x", 1.0, AtLeast(1.1)).contains("MISSED"));
    }
}
