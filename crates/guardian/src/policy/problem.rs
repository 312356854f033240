//! Errors in a policy set, for its author: location, error and fix.

use miette::Diagnostic;

/// An error that must be fixed before the set can be used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Empty if it is in no file.
    pub file: String,
    /// From 1.
    pub line: Option<u32>,
    /// The id of the rule.
    pub policy: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
    pub help: Option<String>,
}

impl Problem {
    /// Converts an error of Cedar.
    pub(super) fn of_cedar(found: &dyn Diagnostic, file: &str, text: &str) -> Self {
        let label = found.labels().and_then(|mut labels| labels.next());
        Self {
            file: file.to_owned(),
            line: label.map(|label| line_of(text, label.offset())),
            policy: None,
            message: found.to_string(),
            help: found.help().map(|help| help.to_string()),
        }
    }
}

/// The candidate most similar to a misspelt name, if one is similar at all.
pub(super) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.6;
    let scored = candidates.map(|candidate| (strsim::normalized_damerau_levenshtein(name, candidate), candidate));
    scored.filter(|(score, _)| *score >= ALIKE).max_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, name)| name)
}

/// Finds rules in a file, in order.
pub(super) struct Cursor<'a> {
    text: &'a str,
    offset: usize,
    line: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, offset: 0, line: 1 }
    }

    /// Advances to a rule and returns its line.
    pub(super) fn line_of(&mut self, rule: &str) -> Option<u32> {
        let rest = self.text.get(self.offset..)?;
        let found = rest.find(rule)?;
        let line = self.line.saturating_add(lines_in(rest.get(..found)?));
        self.line = line.saturating_add(lines_in(rule));
        self.offset = self.offset.saturating_add(found).saturating_add(rule.len());
        Some(line)
    }
}

fn line_of(text: &str, offset: usize) -> u32 {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    newlines(before).saturating_add(1)
}

fn lines_in(text: &str) -> u32 {
    newlines(text.as_bytes())
}

fn newlines(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(u32::MAX)
}
