//! Path templates: `/charges/{charge_id}/capture`. A placeholder is inside one segment and never leaves it.

use std::collections::BTreeSet;
use std::fmt;

use crate::text::check_identifier;

/// The maximum length of a template, in bytes.
const LENGTH_LIMIT: usize = 1024;

/// A path with placeholders, below a base URL.
#[derive(Clone, PartialEq, Eq)]
pub struct PathTemplate {
    segments: Vec<Vec<Part>>,
}

/// A piece of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Literal(String),
    /// The value of this name.
    Placeholder(String),
}

impl PathTemplate {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LENGTH_LIMIT {
            return Err(format!("must be at most {LENGTH_LIMIT} bytes long"));
        }
        let Some(rest) = text.strip_prefix('/') else { return Err("must begin with /".to_owned()) };
        let segments = rest.split('/').map(parse_segment).collect::<Result<Vec<_>, _>>()?;
        // One empty segment at the end is a trailing slash; elsewhere servers interpret it differently.
        let inner = segments.len().saturating_sub(1);
        if segments.iter().take(inner).any(Vec::is_empty) {
            return Err("must not have consecutive slashes".to_owned());
        }
        Ok(Self { segments })
    }

    /// The one segment of this text, whatever it contains.
    pub(crate) fn of_segment(text: &str) -> Self {
        Self { segments: vec![vec![Part::Literal(text.to_owned())]] }
    }

    pub fn placeholders(&self) -> BTreeSet<&str> {
        self.segments.iter().flatten().filter_map(Part::placeholder).collect()
    }

    pub(super) fn segments(&self) -> &[Vec<Part>] {
        &self.segments
    }
}

impl Part {
    fn placeholder(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::Placeholder(name) => Some(name),
        }
    }
}

fn parse_segment(text: &str) -> Result<Vec<Part>, String> {
    if matches!(text, "." | "..") {
        return Err("must not contain the segments . and ..".to_owned());
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((literal, behind)) = rest.split_once('{') {
        push_literal(literal, &mut parts)?;
        let Some((name, after)) = behind.split_once('}') else {
            return Err("has a { without a } in the same segment".to_owned());
        };
        check_identifier(name).map_err(|error| format!("has a placeholder that {error}"))?;
        parts.push(Part::Placeholder(name.to_owned()));
        rest = after;
    }
    push_literal(rest, &mut parts)?;
    Ok(parts)
}

fn push_literal(text: &str, parts: &mut Vec<Part>) -> Result<(), String> {
    let invalid = |letter: &char| letter.is_control() || letter.is_whitespace() || "{}?#%\\".contains(*letter);
    match text.chars().find(invalid) {
        Some('?' | '#') => {
            Err("must not have a query or a fragment; put query parameters into `parameters`".to_owned())
        }
        Some('%') => Err("must not be percent-encoded; write the characters themselves".to_owned()),
        Some(found) => Err(format!("must not contain {found:?}")),
        None if text.is_empty() => Ok(()),
        None => {
            parts.push(Part::Literal(text.to_owned()));
            Ok(())
        }
    }
}

impl fmt::Display for PathTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            formatter.write_str("/")?;
            for part in segment {
                match part {
                    Part::Literal(text) => formatter.write_str(text)?,
                    Part::Placeholder(name) => write!(formatter, "{{{name}}}")?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for PathTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
