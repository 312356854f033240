//! Durations with a unit, such as `90s`, `30m`, `8h`, `7d` and `250ms`, in arguments and configuration files.

use std::fmt;
use std::time::Duration;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// Describes the format in error messages.
pub const ADVICE: &str = "a duration such as 90s, 30m, 8h or 7d";

/// Milliseconds per unit. `ms` precedes `s`, which is a suffix of it.
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Parses a whole number with a unit.
pub fn parse(text: &str) -> Option<Duration> {
    let (number, unit) = UNITS.iter().find_map(|(unit, length)| Some((text.strip_suffix(unit)?, *length)))?;
    let digits = !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit());
    let number = number.parse::<u64>().ok().filter(|_| digits)?;
    number.checked_mul(unit).map(Duration::from_millis)
}

/// Parses a duration of whole seconds. A number without a unit is a number of seconds.
pub fn parse_seconds(text: &str) -> Result<u64, String> {
    let advice = || format!("use {ADVICE}, or a number of seconds");
    if !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit()) {
        return text.parse().map_err(|_| advice());
    }
    in_units(text, 1_000).ok_or_else(advice)
}

/// Deserializes a number of seconds, or a duration with a unit.
pub fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_any(In { unit: 1_000, name: "seconds" }).map(Some)
}

/// Deserializes a number of milliseconds, or a duration with a unit.
pub fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_any(In { unit: 1, name: "milliseconds" }).map(Some)
}

/// Errors do not contain the value: it may be a secret in the wrong place.
struct In {
    unit: u64,
    name: &'static str,
}

impl Visitor<'_> for In {
    type Value = u64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a number of {}, or {ADVICE}", self.name)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_err(|_| E::custom(format!("expected a number of {}, or {ADVICE}", self.name)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        let whole = in_units(text, self.unit);
        whole.ok_or_else(|| E::custom(format!("expected a number of {}, or {ADVICE}", self.name)))
    }
}

/// A duration as a whole number of units of this many milliseconds.
pub fn in_units(text: &str, unit: u64) -> Option<u64> {
    let milliseconds = u64::try_from(parse(text)?.as_millis()).ok()?;
    milliseconds.is_multiple_of(unit).then(|| milliseconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_with_its_unit() {
        for (text, milliseconds) in
            [("250ms", 250), ("90s", 90_000), ("30m", 1_800_000), ("8h", 28_800_000), ("7d", 604_800_000), ("0s", 0)]
        {
            assert_eq!(parse(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for bad in
            ["", "7", "d", "-1d", "+1d", "1.5h", "7 d", "1w", "1h30m", "99999999999999999999d", "18446744073709551d"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn seconds_may_stand_without_their_unit() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("2m", 120), ("1000ms", 1)] {
            assert_eq!(parse_seconds(text), Ok(seconds), "{text}");
        }
        for bad in ["", "x", "1.5", "-1", "+1", "250ms", "99999999999999999999"] {
            assert!(parse_seconds(bad).unwrap_err().contains("8h"), "{bad}");
        }
    }
}
