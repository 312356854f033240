//! Money in millionths of a US dollar, so that sums are exact.

use std::fmt;

/// A non-negative amount of US dollars, to the millionth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u64);

impl Cost {
    /// More than any call costs; also keeps every amount exact as a JSON number.
    const LIMIT: f64 = 1e9;

    /// Converts a JSON number of dollars; `None` if negative, above the limit or finer than a millionth.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        if !(0.0..=Self::LIMIT).contains(&dollars) {
            return None;
        }
        let micros = (dollars * 1e6).round();
        // A finer amount would not be stored exactly.
        if (micros / 1e6 - dollars).abs() > f64::EPSILON * dollars.max(1.0) {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, and within 0..=1e15 by the checks above"
        )]
        Some(Self(micros as u64))
    }

    /// From millionths, as stored; `None` above the limit.
    pub fn from_micros(micros: u64) -> Option<Self> {
        #[expect(clippy::cast_precision_loss, reason = "only compared with a limit far below where it matters")]
        let dollars = micros as f64 / 1e6;
        (dollars <= Self::LIMIT).then_some(Self(micros))
    }

    pub fn micros(self) -> u64 {
        self.0
    }

    /// The amount as a JSON number of dollars.
    pub fn dollars(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "at most 1e15, below 2^53")]
        let micros = self.0 as f64;
        micros / 1e6
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} USD", self.dollars())
    }
}
