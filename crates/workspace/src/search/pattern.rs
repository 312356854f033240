//! Compiles glob patterns and regular expressions from agents, within limits. Errors do not repeat the pattern.

use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};

use crate::error::WorkspaceError;

/// The most memory that a compiled regular expression may use.
const LARGEST: usize = 8 * 1024 * 1024;

/// The longest pattern, in bytes.
const LONGEST: usize = 4096;

/// Compiles a glob in which `*` does not match a slash and `**` does.
pub fn glob(text: &str) -> Result<GlobMatcher, WorkspaceError> {
    within_bounds(text)?;
    let glob = GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build();
    let glob = glob.map_err(|error| WorkspaceError::BadPattern { reason: error.kind().to_string() })?;
    Ok(glob.compile_matcher())
}

/// Compiles a regular expression over the bytes of a line.
pub fn regular_expression(text: &str, case_insensitive: bool) -> Result<Regex, WorkspaceError> {
    within_bounds(text)?;
    let regex = RegexBuilder::new(text).case_insensitive(case_insensitive).size_limit(LARGEST).build();
    regex.map_err(|error| WorkspaceError::BadPattern { reason: reason(&error) })
}

fn within_bounds(text: &str) -> Result<(), WorkspaceError> {
    if text.is_empty() || text.len() > LONGEST {
        let expected = "a string of 1 to 4096 bytes";
        return Err(WorkspaceError::BadArgument { name: "pattern", expected });
    }
    Ok(())
}

/// The last line of the message has the reason; the lines before it repeat the pattern.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "the compiled expression is too large; simplify it".to_owned(),
        other => other.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    }
}
