//! Parsers of arguments: times, durations, JSON from a file, constraints.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolgate_model::strict_json;
use toolgate_model::time::Timestamp;

use super::Failure;
use crate::{clock, durations, prompt};

const FILE_LIMIT: u64 = 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expiry {
    At(Timestamp),
    /// After this duration.
    In(Duration),
    Never,
}

impl Expiry {
    /// Parses `never`, a duration or an RFC 3339 time.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self::Never);
        }
        Self::parse_end(text).map_err(|advice| format!("{advice}, or never"))
    }

    /// Parses a duration or an RFC 3339 time.
    pub(super) fn parse_end(text: &str) -> Result<Self, String> {
        if let Some(duration) = durations::parse(text).filter(|duration| !duration.is_zero()) {
            return Ok(Self::In(duration));
        }
        Timestamp::parse(text).map(Self::At).map_err(|error| format!("{error}, or use {}", durations::ADVICE))
    }

    /// The time; `None` for never.
    pub(super) fn time(self) -> Option<Timestamp> {
        match self {
            Self::At(time) => Some(time),
            Self::In(duration) => Some(clock::now().plus(duration)),
            Self::Never => None,
        }
    }
}

/// The start of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    At(Timestamp),
    Ago(Duration),
}

impl Since {
    /// Parses a duration or an RFC 3339 time.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let advice =
            "use a duration before now, such as 7d, 12h, 30m or 90s, or a time, such as 2026-03-08T10:00:00+00:00";
        if let Ok(time) = Timestamp::parse(text) {
            return Ok(Self::At(time));
        }
        let ago = durations::parse(text).filter(|duration| !duration.is_zero());
        ago.map(Self::Ago).ok_or_else(|| advice.to_owned())
    }

    /// Relative to the current time.
    pub(super) fn now(self) -> Timestamp {
        self.time(clock::now())
    }

    pub(super) fn time(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::Ago(duration) => now.minus(duration),
        }
    }
}

/// How many levels of delegation are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Levels(u32),
    Unlimited,
}

impl Depth {
    /// Parses `unlimited` or a number.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        text.parse().map(Self::Levels).map_err(|_| "use a number, or unlimited".to_owned())
    }

    /// `None` if unlimited.
    pub(super) fn levels(self) -> Option<u32> {
        match self {
            Self::Levels(levels) => Some(levels),
            Self::Unlimited => None,
        }
    }
}

/// Converts an argument to the type of a request member. Errors name the member.
pub fn typed<T: DeserializeOwned>(member: &str, given: impl Serialize) -> Result<T, Failure> {
    let value = serde_json::to_value(given);
    value.and_then(serde_json::from_value).map_err(|error| Failure::Said(format!("`{member}` {error}")))
}

pub(super) fn typed_option<T: DeserializeOwned>(
    member: &str,
    given: Option<impl Serialize>,
) -> Result<Option<T>, Failure> {
    given.map(|given| typed(member, given)).transpose()
}

/// Parses `NAME=JSON`.
pub(super) fn parse_constraint(text: &str) -> Result<(String, Value), String> {
    named_json(text, "use NAME=JSON, such as max_invocations_per_hour=100 or 'allowed_hosts=[\"api.example.com\"]'")
}

/// Parses `NAME=JSON`, for a member of any JSON object.
pub(super) fn parse_member(text: &str) -> Result<(String, Value), String> {
    named_json(text, "use NAME=JSON, such as progress=0.5 or 'phase=\"start\"'")
}

fn named_json(text: &str, advice: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or(advice)?;
    let value = strict_json::parse(value.as_bytes()).map_err(|error| format!("{error}; {advice}"))?;
    Ok((name.to_owned(), value))
}

/// Reads a JSON object from a file, or from standard input if the name is `-`.
pub(super) fn read_object(path: &PathBuf) -> Result<Map<String, Value>, Failure> {
    let shown = path.display().to_string();
    let text = if shown == "-" {
        prompt::standard_input()?.as_bytes().to_vec()
    } else {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(|error| Failure::io(&shown, error))?;
        file.take(FILE_LIMIT).read_to_end(&mut bytes).map_err(|error| Failure::io(&shown, error))?;
        bytes
    };
    match strict_json::parse(&text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Failure::Said(format!("{shown}: expected a JSON object"))),
        Err(error) => Err(Failure::Said(format!("{shown}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn constraints_are_named_json() {
        assert_eq!(parse_constraint("amount_max=10.5"), Ok(("amount_max".to_owned(), json!(10.5))));
        assert_eq!(parse_constraint("a=[\"b=c\"]"), Ok(("a".to_owned(), json!(["b=c"]))));
        for bad in ["", "a", "=1", "a=", "a=b", "a={\"x\":1,\"x\":2}"] {
            assert!(parse_constraint(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn how_long_ago_is_a_number_with_its_unit_or_a_time() {
        let now = Timestamp::parse("2026-03-08T10:00:00Z").unwrap();
        let read = |text| Since::parse(text).map(|since| since.time(now).to_string());
        for (text, time) in [
            ("7d", "2026-03-01T10:00:00.000+00:00"),
            ("12h", "2026-03-07T22:00:00.000+00:00"),
            ("30m", "2026-03-08T09:30:00.000+00:00"),
            ("90s", "2026-03-08T09:58:30.000+00:00"),
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000+00:00"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(time), "{text}");
        }
        for bad in ["", "7", "d", "0d", "-1d", "+1d", "1.5h", "7 d", "1w", "99999999999999999999d", "yesterday"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ends_and_depths_have_a_word_for_none() {
        assert_eq!(Expiry::parse("never").map(Expiry::time), Ok(None));
        let time = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
        assert_eq!(Expiry::parse("2026-01-01T00:00:00Z").map(Expiry::time), Ok(Some(time)));
        assert_eq!(Expiry::parse("8h"), Ok(Expiry::In(Duration::from_secs(28_800))));
        let advice = Expiry::parse("tomorrow").unwrap_err();
        assert!(advice.contains("8h") && advice.ends_with("or never"), "{advice}");
        assert!(Expiry::parse_end("never").is_err() && Expiry::parse("0s").is_err());
        assert_eq!(Depth::parse("unlimited").map(Depth::levels), Ok(None));
        assert_eq!(Depth::parse("3").map(Depth::levels), Ok(Some(3)));
        assert!(Depth::parse("-1").is_err());
    }
}
