//! Points in time, to the millisecond: what is stored, compared and shown is the same value.

use std::fmt;
use std::time::Duration;

use jiff::tz::TimeZone;
use thiserror::Error;

/// A point in time, UTC, in whole milliseconds. Written as RFC 3339 with `+00:00` and three fraction digits, which the
/// oldest supported client of the protocol can read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

/// The text or number does not name a point in time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a time: write RFC 3339 with an offset, for example 2026-03-08T10:00:00+00:00")]
pub struct TimeError;

impl Timestamp {
    /// The beginning of 1970.
    pub const EPOCH: Self = Self(jiff::Timestamp::UNIX_EPOCH);

    /// From milliseconds since 1970.
    pub fn from_millis(millis: i64) -> Result<Self, TimeError> {
        jiff::Timestamp::from_millisecond(millis).map(Self).map_err(|_| TimeError)
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Reads RFC 3339; finer fractions than a millisecond are cut off.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let exact: jiff::Timestamp = text.parse().map_err(|_| TimeError)?;
        Self::from_millis(exact.as_millisecond())
    }

    /// `duration` later; the end of time at the latest.
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.as_millis().saturating_add(millis)).unwrap_or(Self(END_OF_TIME))
    }

    /// `duration` earlier; the beginning of time at the earliest.
    pub fn minus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.as_millis().saturating_sub(millis)).unwrap_or(Self(jiff::Timestamp::MIN))
    }
}

/// The last whole millisecond that can be written.
const END_OF_TIME: jiff::Timestamp = jiff::Timestamp::constant(253_402_207_200, 0);

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let civil = self.0.to_zoned(TimeZone::UTC).datetime();
        write!(
            formatter,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}+00:00",
            civil.year(),
            civil.month(),
            civil.day(),
            civil.hour(),
            civil.minute(),
            civil.second(),
            civil.millisecond()
        )
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
