//! Histograms of integers that any thread can add to without a lock or an allocation.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts values by the smallest bound that they do not exceed.
#[derive(Debug)]
pub struct Distribution<const N: usize> {
    bounds: &'static [u64; N],
    counts: [AtomicU64; N],
    /// The number of values above every bound.
    beyond: AtomicU64,
    sum: AtomicU64,
}

/// What a distribution has counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// Each bound with the number of values up to it and above the previous bound.
    pub buckets: Vec<(u64, u64)>,
    pub beyond: u64,
    pub sum: u64,
}

impl<const N: usize> Distribution<N> {
    /// The bounds must be in ascending order.
    pub const fn new(bounds: &'static [u64; N]) -> Self {
        Self { bounds, counts: [const { AtomicU64::new(0) }; N], beyond: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }

    pub fn add(&self, value: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts.get(place).unwrap_or(&self.beyond).fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub fn counted(&self) -> Counted {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        Counted {
            buckets: self.bounds.iter().copied().zip(counts).collect(),
            beyond: self.beyond.load(Ordering::Relaxed),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

impl Counted {
    /// The sum of two distributions with the same bounds.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        for ((_, count), (_, further)) in self.buckets.iter_mut().zip(&other.buckets) {
            *count = count.saturating_add(*further);
        }
        self.beyond = self.beyond.saturating_add(other.beyond);
        self.sum = self.sum.saturating_add(other.sum);
        self
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum::<u64>().saturating_add(self.beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_for_the_smallest_bound_that_it_does_not_exceed() {
        let distribution = Distribution::new(&[1, 10, 100]);
        for value in [0, 1, 2, 10, 11, 100, 101, 1_000] {
            distribution.add(value);
        }
        let counted = distribution.counted();
        assert_eq!(counted.buckets, [(1, 2), (10, 2), (100, 2)]);
        assert_eq!((counted.beyond, counted.sum, counted.count()), (2, 1_225, 8));
    }
}
