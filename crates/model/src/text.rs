//! Names and short texts from people and programs: bounded, printable, and safe in a log, a terminal or a URL.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Why a text is rejected. The message follows the name of the field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TextError {
    #[error("must not be empty")]
    Empty,
    #[error("must be at most {limit} bytes long, has {length}")]
    TooLong { limit: usize, length: usize },
    #[error("must not contain {found:?}; {allowed}")]
    Character {
        /// The first one.
        found: char,
        /// The allowed characters, as a sentence.
        allowed: &'static str,
    },
}

/// Checks an identifier that clients choose: letters, digits and `. _ : @ -`, at most 128 bytes.
pub fn check_identifier(text: &str) -> Result<(), TextError> {
    check_length(text, 128)?;
    let allowed = "use letters, digits and . _ : @ -";
    check_characters(text, allowed, |letter| letter.is_ascii_alphanumeric() || "._:@-".contains(letter))
}

/// Checks a text for people: anything printable on one line, at most `limit` bytes.
pub fn check_line(text: &str, limit: usize) -> Result<(), TextError> {
    check_length(text, limit)?;
    check_characters(text, "use printable characters on one line", |letter| {
        !letter.is_control() && !is_deceptive(letter)
    })
}

/// Checks a text of several lines, which may be empty: anything printable, with tabs and line breaks, at most `limit` bytes.
pub fn check_lines(text: &str, limit: usize) -> Result<(), TextError> {
    if text.len() > limit {
        return Err(TextError::TooLong { limit, length: text.len() });
    }
    check_characters(text, "use printable characters, tabs and line breaks", |letter| {
        matches!(letter, '\n' | '\r' | '\t') || !letter.is_control() && !is_deceptive(letter)
    })
}

/// Invisible characters that change how their neighbours are displayed.
fn is_deceptive(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

fn check_length(text: &str, limit: usize) -> Result<(), TextError> {
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    if text.len() > limit {
        return Err(TextError::TooLong { limit, length: text.len() });
    }
    Ok(())
}

fn check_characters(text: &str, allowed: &'static str, fits: impl Fn(char) -> bool) -> Result<(), TextError> {
    match text.chars().find(|&letter| !fits(letter)) {
        Some(found) => Err(TextError::Character { found, allowed }),
        None => Ok(()),
    }
}

/// Declares identifiers. They are shared, because a call passes its own on to every record that it leaves.
macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, $crate::text::TextError> {
                $crate::text::check_identifier(text)?;
                Ok(Self(text.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&$name> for $crate::text::SharedText {
            fn from(name: &$name) -> Self {
                Self(std::sync::Arc::clone(&name.0))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    )+};
}
pub(crate) use identifiers;

/// A text that several records of a call share.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedText(pub(crate) Arc<str>);

impl SharedText {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::ops::Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, formatter)
    }
}

impl serde::Serialize for SharedText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for SharedText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <std::borrow::Cow<'de, str>>::deserialize(deserializer).map(|text| Self(text.as_ref().into()))
    }
}

identifiers! {
    /// A label of a tool or a principal, for policies and guardians (`private-data`, `team:payments`).
    Label;
}

/// A one-line text for people (a name, a label, a reason), at most 256 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Line(String);

impl Line {
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check_line(text, 256)?;
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl serde::Serialize for Line {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Line {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// A text of several lines for people, at most 8 KiB. It may be empty.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MultilineText(String);

impl MultilineText {
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check_lines(text, 8 << 10)?;
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<MultilineText> for String {
    fn from(text: MultilineText) -> Self {
        text.0
    }
}

impl fmt::Debug for MultilineText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl serde::Serialize for MultilineText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for MultilineText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_several_lines_hold_no_control_besides_their_breaks() {
        for good in ["", "one\n\ttwo\r\n", "Überweisung"] {
            assert_eq!(check_lines(good, 256), Ok(()), "{good}");
        }
        for bad in ["a\u{1b}[2J", "a\0", "a\u{202e}b"] {
            assert!(check_lines(bad, 256).is_err(), "{bad:?}");
        }
        assert!(MultilineText::parse(&"x".repeat(8193)).is_err());
    }

    #[test]
    fn identifiers_are_what_fits_a_url_and_a_log() {
        for good in ["agent_billing_01", "user:ann@example.org", "a", "A-1.b"] {
            assert_eq!(check_identifier(good), Ok(()), "{good}");
        }
        for bad in ["", "a b", "a/b", "ä", "a\n", "a\0b", "a%2fb"] {
            assert!(check_identifier(bad).is_err(), "{bad:?}");
        }
        assert!(check_identifier(&"x".repeat(129)).is_err());
    }

    #[test]
    fn lines_hold_no_control_and_no_direction_tricks() {
        assert_eq!(check_line("Überweisung, 1. März", 256), Ok(()));
        for bad in ["a\nb", "a\u{202e}b", "zero\u{200b}width", "\u{1b}[31m"] {
            assert!(check_line(bad, 256).is_err(), "{bad:?}");
        }
    }
}
