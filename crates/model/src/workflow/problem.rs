//! What is wrong with a file, and where.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_saphyr::granit_parser::Marker;

/// The maximum number of problems that are reported at once.
pub const PROBLEM_LIMIT: usize = 100;
/// The maximum length of a quoted text in a message.
const QUOTED_BYTES: usize = 200;

/// A position in a file: line and character, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

impl Place {
    pub const START: Self = Self { line: 1, column: 1 };

    pub(super) fn of(marker: Marker) -> Self {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { line: number(marker.line().max(1)), column: number(marker.col().saturating_add(1)) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// A value that remembers where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Located<T> {
    pub value: T,
    pub at: Place,
}

/// One problem of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub at: Place,
    /// The member that it is about; empty for the file as a whole.
    pub path: String,
    /// What is wrong and what to write instead.
    pub message: String,
}

impl Problem {
    pub fn new(at: Place, path: &str, message: impl Into<String>) -> Self {
        Self { at, path: path.to_owned(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.at, self.message)
    }
}

/// Orders problems by position, without repetitions and as far as they are reported.
pub fn in_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort();
    problems.dedup();
    problems.truncate(PROBLEM_LIMIT);
    problems
}

/// `; did you mean ...?` with the candidate that is most like a name, if one is like it at all.
pub fn meant<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    const ALIKE: f64 = 0.6;
    let scored =
        candidates.into_iter().map(|candidate| (strsim::normalized_damerau_levenshtein(name, candidate), candidate));
    let nearest = scored.filter(|(score, _)| *score >= ALIKE).max_by(|left, right| left.0.total_cmp(&right.0));
    nearest.map_or_else(String::new, |(_, near)| format!("; did you mean `{}`?", quoted(near)))
}

/// A text of the file for a message, shortened.
pub fn quoted(text: &str) -> &str {
    let mut end = text.len().min(QUOTED_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
