//! Detectors: what they name must not be in what is passed on. They look at texts, at the texts, names and numbers of a
//! JSON value, or only below some of its fields; what they find is replaced by a marker that tells its kind.
//! Pure, and linear in the length of the text whatever somebody put into it.

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

/// Cutting something out may bring other things together, so a text is looked at again. One that does not come to rest
/// after so many times is replaced as a whole.
const MAX_ROUNDS: usize = 4;

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DetectorKind {
    /// E-mail addresses, also with an encoded `@`.
    Email,
    /// Telephone numbers with a country code, or grouped as people write them.
    Phone,
    /// Numbers of payment cards with a known issuer and the right checksum.
    Card,
    /// International bank account numbers with the right checksum.
    Iban,
    /// Numbers that states give to persons.
    NationalId,
    /// Keys, tokens, passwords, as far as they can be told by their shape or by the name before them.
    Secret,
    /// What this regular expression matches.
    Custom(String),
}

/// Why there is no such detector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DetectorError {
    /// No detector has this name.
    #[error(
        "unknown detector `{0}`: use email, phone, card, iban, national-id, secret, or regex: with an expression behind it"
    )]
    Unknown(String),
    /// It would be found everywhere.
    #[error("the expression `{0}` matches a text of no length: make it match at least one character")]
    MatchesNothing(String),
    /// It is no regular expression, or too large a one.
    #[error("the expression `{expression}` cannot be used: {reason}")]
    Expression {
        /// As it was written.
        expression: String,
        /// What the compiler of expressions says.
        reason: String,
    },
}

impl DetectorKind {
    /// Reads `email`, `phone`, `card`, `iban`, `national-id`, `secret` or `regex:EXPRESSION`.
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

    /// What stands in the place of what was found.
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

/// Some detectors, ready for use and cheap to clone.
///
/// INVARIANT: nothing occurs in what `redact` and `redact_json` return.
#[derive(Debug, Clone)]
pub struct Detectors(Arc<[Detector]>);

impl Detectors {
    /// Makes them ready.
    pub fn new(kinds: &[DetectorKind]) -> Result<Self, DetectorError> {
        let detector = |kind: &DetectorKind| Ok(Detector { marker: kind.marker(), search: Search::of(kind)? });
        kinds.iter().map(detector).collect::<Result<_, _>>().map(Self)
    }

    /// The text with a marker for everything that was found; `None` where nothing was.
    pub fn redact(&self, text: &str) -> Option<String> {
        let mut redacted = self.redact_once(text)?;
        // A marker is longer than many a thing that it stands for; a text that is blown up will not come to rest.
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

    /// Whether something would be found.
    pub fn occurs(&self, text: &str) -> bool {
        !self.findings(text).is_empty()
    }

    /// The value with every text, number and name of a member redacted; `None` where nothing was found.
    pub fn redact_json(&self, value: &Value) -> Option<Value> {
        json::redact(self, value, false)
    }

    /// Whether secrets are looked for, so that the name of a member says something about its value.
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

    /// What is found in the text as it is and in its normal form, in order, without overlaps.
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

/// One kind, ready for use.
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

/// Where something was found, and what takes its place.
#[derive(Debug)]
struct Finding {
    range: Range<usize>,
    marker: &'static str,
}

/// One finding in the place of those that overlap, with the marker of the longest; also of those of one kind that touch.
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
