//! The number of operations per transaction, for metrics.

use toolgate_gate::distribution::Distribution;

const BOUNDS: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

pub(crate) type BatchSizes = Distribution<{ BOUNDS.len() }>;

pub(crate) fn batch_sizes() -> BatchSizes {
    Distribution::new(&BOUNDS)
}
