//! Numbers of a constraint, compared exactly: an integer beyond 2^53 is not rounded into a limit that it exceeds.

use std::cmp::Ordering;
use std::fmt;

/// A finite JSON number.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// Written without fraction or exponent.
    Integer(i128),
    /// Any other.
    Decimal(f64),
}

impl Number {
    /// `None` if the value is not a number.
    pub fn from_json(value: &serde_json::Value) -> Option<Self> {
        let number = value.as_number()?;
        number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
            .map(Self::Integer)
            .or_else(|| number.as_f64().filter(|decimal| decimal.is_finite()).map(Self::Decimal))
    }

    pub fn to_json(self) -> serde_json::Value {
        match self {
            Self::Integer(integer) => i64::try_from(integer)
                .map(serde_json::Value::from)
                .or_else(|_| u64::try_from(integer).map(serde_json::Value::from))
                .unwrap_or(serde_json::Value::Null),
            Self::Decimal(decimal) => serde_json::Value::from(decimal),
        }
    }
}

/// A decimal of this size is larger than every 64-bit integer, and well within 128 bits.
const BEYOND: f64 = 1.0e30;

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (*self, *other) {
            (Self::Integer(left), Self::Integer(right)) => left.cmp(&right),
            (Self::Decimal(left), Self::Decimal(right)) => left.partial_cmp(&right).unwrap_or(Ordering::Equal),
            (Self::Integer(left), Self::Decimal(right)) => integer_to_decimal(left, right),
            (Self::Decimal(left), Self::Integer(right)) => integer_to_decimal(right, left).reverse(),
        }
    }
}

/// INVARIANT: integers come from 64 bits.
fn integer_to_decimal(integer: i128, decimal: f64) -> Ordering {
    if decimal.abs() > BEYOND {
        return if decimal > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    #[expect(clippy::cast_possible_truncation, reason = "truncated on purpose, and within 1e30 by the check above")]
    let whole = decimal.trunc() as i128;
    integer.cmp(&whole).then_with(|| 0.0_f64.partial_cmp(&decimal.fract()).unwrap_or(Ordering::Equal))
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => write!(formatter, "{integer}"),
            Self::Decimal(decimal) => write!(formatter, "{decimal}"),
        }
    }
}
