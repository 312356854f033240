//! Points in time, to the millisecond: what is stored, compared and shown is the same value.

use std::fmt;
use std::time::Duration;

use jiff::tz::Offset;
use thiserror::Error;

/// A point in time, UTC, in whole milliseconds. Written as RFC 3339 with `+00:00` and three fraction digits, which the
/// oldest supported client of the protocol can parse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("must be an RFC 3339 time with an offset, for example 2026-03-08T10:00:00+00:00")]
pub struct TimeError;

impl Timestamp {
    pub const EPOCH: Self = Self(jiff::Timestamp::UNIX_EPOCH);

    /// From milliseconds since 1970.
    pub fn from_millis(millis: i64) -> Result<Self, TimeError> {
        jiff::Timestamp::from_millisecond(millis).map(Self).map_err(|_| TimeError)
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Parses RFC 3339; fractions below a millisecond are truncated.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let exact: jiff::Timestamp = text.parse().map_err(|_| TimeError)?;
        Self::from_millis(exact.as_millisecond())
    }

    /// Saturates at the end of time.
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.as_millis().saturating_add(millis)).unwrap_or(Self(END_OF_TIME))
    }

    /// Saturates at the beginning of time.
    pub fn minus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.as_millis().saturating_sub(millis)).unwrap_or(Self(jiff::Timestamp::MIN))
    }
}

/// The last whole millisecond that can be written.
const END_OF_TIME: jiff::Timestamp = jiff::Timestamp::constant(253_402_207_200, 0);

impl Timestamp {
    /// The sign before the text, and the text itself.
    fn text(self) -> (&'static str, [u8; 29]) {
        let civil = Offset::UTC.to_datetime(self.0);
        let (year, millisecond) = (i32::from(civil.year()), i32::from(civil.millisecond()));
        // Written at once: every event of every call has its time.
        let mut text = *b"0000-00-00T00:00:00.000+00:00";
        for (end, length, number) in [
            (4, 4, year.abs()),
            (7, 2, i32::from(civil.month())),
            (10, 2, i32::from(civil.day())),
            (13, 2, i32::from(civil.hour())),
            (16, 2, i32::from(civil.minute())),
            (19, 2, i32::from(civil.second())),
            (23, 3, millisecond),
        ] {
            write_digits(&mut text, end, length, number);
        }
        (if year < 0 { "-" } else { "" }, text)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, text) = self.text();
        formatter.write_str(sign)?;
        // INVARIANT: only ASCII digits are inserted.
        formatter.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// Writes the digits of a number before this position.
fn write_digits(text: &mut [u8; 29], end: usize, length: usize, number: i32) {
    let mut rest = number;
    for place in text.iter_mut().take(end).rev().take(length) {
        *place = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (sign, text) = self.text();
        match std::str::from_utf8(&text) {
            Ok(text) if sign.is_empty() => serializer.serialize_str(text),
            _ => serializer.collect_str(self),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_with_offset_and_three_digits() {
        let time = Timestamp::parse("2026-02-08T10:00:00Z").unwrap();
        assert_eq!(time.to_string(), "2026-02-08T10:00:00.000+00:00");
        let time = Timestamp::parse("2026-02-08T12:00:00.1239+02:00").unwrap();
        assert_eq!(time.to_string(), "2026-02-08T10:00:00.123+00:00");
    }

    #[test]
    fn every_digit_has_its_place() {
        for text in [
            "1969-12-31T23:59:59.999+00:00",
            "2026-11-16T01:02:03.040+00:00",
            "9999-12-30T21:43:56.789+00:00",
            "0000-01-02T03:04:05.006+00:00",
        ] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), text);
        }
        let first = Timestamp::EPOCH.minus(Duration::MAX).to_string();
        assert!(first.starts_with("-9999-01-0"), "{first}");
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        for text in ["", "yesterday", "2026-02-30T10:00:00Z", "2026-02-08T10:00:00", "1770544800"] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn adding_stops_at_the_end_of_time() {
        let end = Timestamp::from_millis(0).unwrap().plus(Duration::MAX);
        assert_eq!(end.plus(Duration::from_secs(1)), end);
        assert!(end.to_string().starts_with("9999-"));
    }
}
