//! What a call really cost, where its service says so.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::constraint::Cost;

/// Where the response of a tool states what the call cost, and the most that is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedCost {
    /// An RFC 6901 pointer into the result.
    pub from: String,
    /// The most that a call can cost: reserved before the call, and charged if the service states more.
    pub at_most: Cost,
}

/// What the recorded cost of a call is based on. Absent for the estimate of a tool that states no cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostBasis {
    /// The service stated it.
    Stated,
    /// The service stated no usable amount, so the estimate counts.
    Estimated,
    /// The service stated more than a call can cost, so the most that it can cost counts.
    Capped,
}

impl CostBasis {
    pub const ALL: [Self; 3] = [Self::Stated, Self::Estimated, Self::Capped];

    /// The stored and displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stated => "stated",
            Self::Estimated => "estimated",
            Self::Capped => "capped",
        }
    }

    /// Parses [`CostBasis::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|basis| basis.as_str() == text)
    }
}

impl StatedCost {
    /// How many times its estimate a call can cost, if the definition does not say.
    const TIMES_THE_ESTIMATE: u64 = 10;

    /// The most that is believed, from the estimate.
    pub fn usual_limit(estimate: Cost) -> Option<Cost> {
        Cost::from_micros(estimate.micros().checked_mul(Self::TIMES_THE_ESTIMATE)?)
    }

    /// The amount that a result states; `None` if it states none that can be one.
    fn read(&self, result: &Value) -> Option<u128> {
        match result.pointer(&self.from)? {
            Value::Number(number) => micros_of_number(number),
            Value::String(text) => micros(text),
            _ => None,
        }
    }
}

/// What a call is charged, of which this much was reserved, and what that is based on. Never more than was reserved.
pub fn charge(
    stated: &StatedCost,
    estimate: Option<Cost>,
    reserved: Cost,
    result: Option<&Value>,
) -> (Cost, CostBasis) {
    match result.and_then(|result| stated.read(result)) {
        Some(micros) if micros <= u128::from(reserved.micros()) => {
            let cost = u64::try_from(micros).ok().and_then(Cost::from_micros).unwrap_or(reserved);
            (cost, CostBasis::Stated)
        }
        Some(_) => (reserved, CostBasis::Capped),
        // Without an estimate, the most that it can cost.
        None => (estimate.map_or(reserved, |estimate| estimate.min(reserved)), CostBasis::Estimated),
    }
}

pub(crate) fn micros_of_number(number: &Number) -> Option<u128> {
    // The shortest decimal text of the number is what the service wrote, not its nearest binary fraction.
    micros(&number.to_string())
}

/// Dollars as a decimal text, in millionths, rounded up; `None` if negative or not a decimal.
pub(crate) fn micros(text: &str) -> Option<u128> {
    const LONGEST: usize = 40;
    if text.len() > LONGEST {
        return None;
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if whole.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let value: u128 = digits.parse().ok()?;
    let shift = exponent.checked_add(6)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let power = |by: u32| 10_u128.checked_pow(by);
    if shift >= 0 {
        // Too large an amount is certainly more than any limit.
        let scaled = power(shift.unsigned_abs()).and_then(|power| value.checked_mul(power));
        return Some(if value == 0 { 0 } else { scaled.unwrap_or(u128::MAX) });
    }
    Some(match power(shift.unsigned_abs()) {
        Some(power) => value.div_ceil(power),
        None => u128::from(value > 0),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dollars(dollars: f64) -> Cost {
        Cost::from_dollars(dollars).unwrap()
    }

    #[test]
    fn an_amount_is_read_exactly_and_rounded_up_to_a_millionth() {
        for (text, expected) in [
            ("0.1", Some(100_000)),
            ("0.0000001", Some(1)),
            ("1e-7", Some(1)),
            ("2.5E2", Some(250_000_000)),
            ("0", Some(0)),
            ("0e90", Some(0)),
            ("12", Some(12_000_000)),
            ("1e300", Some(u128::MAX)),
            ("1e-300", Some(1)),
            ("-1", None),
            ("", None),
            (".5", None),
            ("NaN", None),
            ("1,5", None),
            ("0x1", None),
            ("1e99999999999", None),
        ] {
            assert_eq!(micros(text), expected, "{text}");
        }
        assert_eq!(micros_of_number(json!(0.3).as_number().unwrap()), Some(300_000));
    }

    #[test]
    fn a_stated_cost_is_believed_up_to_what_was_reserved() {
        let stated = StatedCost { from: "/usage/cost_usd".to_owned(), at_most: dollars(1.0) };
        let charged = |result: Value| charge(&stated, Some(dollars(0.1)), dollars(1.0), Some(&result));
        assert_eq!(charged(json!({"usage": {"cost_usd": 0.25}})), (dollars(0.25), CostBasis::Stated));
        assert_eq!(charged(json!({"usage": {"cost_usd": "0.25"}})), (dollars(0.25), CostBasis::Stated));
        assert_eq!(charged(json!({"usage": {"cost_usd": 1}})), (dollars(1.0), CostBasis::Stated));
        assert_eq!(charged(json!({"usage": {"cost_usd": 1.000_001}})), (dollars(1.0), CostBasis::Capped));
        for unusable in [json!({}), json!({"usage": {"cost_usd": -1}}), json!({"usage": {"cost_usd": null}})] {
            assert_eq!(charged(unusable), (dollars(0.1), CostBasis::Estimated));
        }
        assert_eq!(charge(&stated, None, dollars(1.0), None), (dollars(1.0), CostBasis::Estimated));
        assert_eq!(charge(&stated, Some(dollars(2.0)), dollars(1.0), None), (dollars(1.0), CostBasis::Estimated));
    }
}
