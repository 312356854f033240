//! Patterns on string parameters: linear-time regular expressions that must match the whole value.

use std::fmt;
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

/// A regular expression, compared by its text and compiled on first use.
#[derive(Clone)]
pub(super) struct Pattern {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    const LENGTH_LIMIT: usize = 512;
    const COMPILED_LIMIT: usize = 256 * 1024;

    /// Validates the pattern.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > Self::LENGTH_LIMIT {
            return Err(format!("must not exceed {} bytes", Self::LENGTH_LIMIT));
        }
        let pattern = Self { text: text.to_owned(), compiled: OnceLock::new() };
        if pattern.regex().is_none() {
            return Err("is not a valid regular expression, or is too large to compile".to_owned());
        }
        Ok(pattern)
    }

    /// Whether the pattern matches the whole text.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn regex(&self) -> Option<&Regex> {
        self.compiled
            .get_or_init(|| {
                // Parsed alone first: a text with unbalanced brackets must not close the group of the anchors.
                RegexBuilder::new(&self.text).size_limit(Self::COMPILED_LIMIT).build().ok()?;
                RegexBuilder::new(&format!(r"\A(?:{})\z", self.text)).size_limit(Self::COMPILED_LIMIT).build().ok()
            })
            .as_ref()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, formatter)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pattern {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}
