//! Detectors find sensitive data and replace it with a marker that names its kind. They search strings, or the strings,
//! names and numbers of a JSON value, or only some of its fields. Pure, and linear in the length of the text for any
//! input.

use std::ops::Range;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

pub use self::fields::{FieldError, FieldPath, FieldSelector, redact_fields};

mod card;
mod custom;
mod digits;
mod email;
mod fields;
mod iban;
mod json;
mod marker;
mod national_id;
mod normal;
mod phone;
mod secret;

#[cfg(test)]
mod tests;

/// Redaction may join text that then matches, so it is repeated. A text that still changes after this many rounds is
/// replaced as a whole.
const MAX_ROUNDS: usize = 4;

/// What a detector looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DetectorKind {
    /// Email addresses, also with an encoded `@`.
    Email,
    /// Phone numbers with a country code, or in common groupings.
    Phone,
    /// Payment card numbers with a known issuer and a valid check digit.
    Card,
    /// International bank account numbers with valid check digits.
    Iban,
    /// National identification numbers.
    NationalId,
    /// Keys, tokens and passwords that are recognizable by their format or by the name before them.
    Secret,
    /// Matches of this regular expression.
    Custom(String),
}

/// Why a detector cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DetectorError {
    #[error("unknown detector `{0}`: use email, phone, card, iban, national-id, secret, or regex:EXPRESSION")]
    Unknown(String),
    #[error("the expression `{0}` matches the empty string; make it match at least one character")]
    MatchesNothing(String),
    #[error("invalid expression `{expression}`: {reason}")]
    Expression {
        expression: String,
        /// The error of the regex compiler.
        reason: String,
    },
}

impl DetectorKind {
    /// Parses `email`, `phone`, `card`, `iban`, `national-id`, `secret` or `regex:EXPRESSION`.
    pub fn parse(text: &str) -> Result<Self, DetectorError> {
        if let Some(expression) = text.strip_prefix("regex:") {
            custom::compile(expression)?;
            return Ok(Self::Custom(expression.to_owned()));
        }
        match text {
            "email" => Ok(Self::Email),
            "phone" => Ok(Self::Phone),
            "card" => Ok(Self::Card),
            "iban" => Ok(Self::Iban),
            "national-id" => Ok(Self::NationalId),
            "secret" => Ok(Self::Secret),
            unknown => Err(DetectorError::Unknown(unknown.to_owned())),
        }
    }

    /// The replacement for a match.
    pub fn marker(&self) -> &'static str {
        match self {
            Self::Email => "[REDACTED-EMAIL]",
            Self::Phone => "[REDACTED-PHONE]",
            Self::Card => "[REDACTED-CARD]",
            Self::Iban => "[REDACTED-IBAN]",
            Self::NationalId => "[REDACTED-ID]",
            Self::Secret => "[REDACTED-SECRET]",
            Self::Custom(_) => marker::PLAIN,
        }
    }
}

/// A set of compiled detectors, cheap to clone.
///
/// INVARIANT: the output of `redact` and `redact_json` contains no match.
#[derive(Debug, Clone)]
pub struct Detectors(Arc<[Detector]>);

impl Detectors {
    /// Compiles the detectors.
    pub fn new(kinds: &[DetectorKind]) -> Result<Self, DetectorError> {
        let detector = |kind: &DetectorKind| Ok(Detector { marker: kind.marker(), search: Search::of(kind)? });
        kinds.iter().map(detector).collect::<Result<_, _>>().map(Self)
    }

    /// Replaces every match with a marker; `None` if there is no match.
    pub fn redact(&self, text: &str) -> Option<String> {
        let mut redacted = self.redact_once(text)?;
        // A marker is longer than many matches; a text that grows this much does not converge.
        let longest = text.len().saturating_mul(8).saturating_add(64);
        for _ in 0..MAX_ROUNDS {
            if redacted.len() > longest {
                break;
            }
            match self.redact_once(&redacted) {
                None => return Some(redacted),
                Some(again) => redacted = again,
            }
        }
        Some(marker::PLAIN.to_owned())
    }

    /// Whether the text has a match.
    pub fn occurs(&self, text: &str) -> bool {
        !self.findings(text).is_empty()
    }

    /// Redacts every string, number and member name of the value; `None` if there is no match.
    pub fn redact_json(&self, value: &Value) -> Option<Value> {
        json::redact(self, value, false)
    }

    /// Whether secrets are looked for, so that the name of a member is evidence about its value.
    fn look_for_secrets(&self) -> bool {
        self.0.iter().any(|detector| matches!(detector.search, Search::Secret))
    }

    fn redact_once(&self, text: &str) -> Option<String> {
        let findings = self.findings(text);
        if findings.is_empty() {
            return None;
        }
        let mut redacted = String::with_capacity(text.len());
        let mut position = 0;
        for Finding { range, marker } in findings {
            redacted.push_str(text.get(position..range.start).unwrap_or_default());
            redacted.push_str(marker);
            position = range.end;
        }
        redacted.push_str(text.get(position..).unwrap_or_default());
        Some(redacted)
    }

    /// Matches in the text and in its normal form, in order, without overlaps.
    fn findings(&self, text: &str) -> Vec<Finding> {
        let normal = normal::of(text);
        let mut findings = Vec::new();
        for Detector { marker, search } in self.0.iter() {
            let mut add = |range| findings.push(Finding { range, marker });
            search.find(text).into_iter().for_each(&mut add);
            if let Some(normal) = &normal {
                search.find(normal.text()).into_iter().filter_map(|range| normal.original(&range)).for_each(add);
            }
        }
        if findings.is_empty() {
            return findings;
        }
        let markers = marker::find(text);
        findings.retain(|finding| !marker::is_inside(&markers, &finding.range));
        merged(findings)
    }
}

/// A compiled detector.
#[derive(Debug)]
struct Detector {
    marker: &'static str,
    search: Search,
}

#[derive(Debug)]
enum Search {
    Email,
    Phone,
    Card,
    Iban,
    NationalId,
    Secret,
    Custom(Regex),
}

impl Search {
    fn of(kind: &DetectorKind) -> Result<Self, DetectorError> {
        Ok(match kind {
            DetectorKind::Email => Self::Email,
            DetectorKind::Phone => Self::Phone,
            DetectorKind::Card => Self::Card,
            DetectorKind::Iban => Self::Iban,
            DetectorKind::NationalId => Self::NationalId,
            DetectorKind::Secret => Self::Secret,
            DetectorKind::Custom(expression) => Self::Custom(custom::compile(expression)?),
        })
    }

    fn find(&self, text: &str) -> Vec<Range<usize>> {
        match self {
            Self::Email => email::find(text),
            Self::Phone => phone::find(text),
            Self::Card => card::find(text),
            Self::Iban => iban::find(text),
            Self::NationalId => national_id::find(text),
            Self::Secret => secret::find(text),
            Self::Custom(expression) => custom::find(expression, text),
        }
    }
}

/// A match and its replacement.
#[derive(Debug)]
struct Finding {
    range: Range<usize>,
    marker: &'static str,
}

/// Merges overlapping findings, and adjacent ones of the same kind, into one with the marker of the longest.
fn merged(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| (finding.range.start, finding.range.end));
    let mut merged: Vec<(Finding, usize)> = Vec::with_capacity(findings.len());
    for finding in findings {
        let length = finding.range.len();
        match merged.last_mut() {
            Some((last, longest))
                if finding.range.start < last.range.end
                    || (finding.range.start == last.range.end && finding.marker == last.marker) =>
            {
                last.range.end = last.range.end.max(finding.range.end);
                if length > *longest {
                    (last.marker, *longest) = (finding.marker, length);
                }
            }
            _ => merged.push((finding, length)),
        }
    }
    merged.into_iter().map(|(finding, _)| finding).collect()
}
