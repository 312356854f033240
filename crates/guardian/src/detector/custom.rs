//! Custom expressions: compiled and searched within limits.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

use super::DetectorError;

/// The maximum size of a compiled expression.
const LARGEST: usize = 1 << 20;
/// The maximum nesting of groups.
const DEEPEST: u32 = 64;
/// The maximum number of bytes searched for one text. Finding one match may need a scan of the whole rest, so many
/// matches in a long text could otherwise cost the square of its length.
const MAX_WORK: usize = 1 << 30;
/// Texts in which an expression could have an empty match.
const PROBES: [&str; 7] = ["", "a", "A", "0", " ", "a b", "a\nb"];

/// Compiles an expression; rejects one that is too large or that matches the empty string.
pub(super) fn compile(expression: &str) -> Result<Regex, DetectorError> {
    let compiled =
        RegexBuilder::new(expression).size_limit(LARGEST).dfa_size_limit(LARGEST).nest_limit(DEEPEST).build();
    let regex = compiled.map_err(|error| {
        let expression = expression.to_owned();
        DetectorError::Expression { expression, reason: error.to_string() }
    })?;
    if PROBES.iter().any(|probe| regex.find_iter(probe).any(|found| found.is_empty())) {
        return Err(DetectorError::MatchesNothing(expression.to_owned()));
    }
    Ok(regex)
}

/// Finds the matches. Beyond the work limit, the rest of the text counts as a match.
pub(super) fn find(regex: &Regex, text: &str) -> Vec<Range<usize>> {
    find_within(MAX_WORK, regex, text)
}

fn find_within(most_work: usize, regex: &Regex, text: &str) -> Vec<Range<usize>> {
    let most = most_work / text.len().max(1);
    let mut found: Vec<Range<usize>> = Vec::new();
    for one in regex.find_iter(text).filter(|one| !one.is_empty()) {
        if found.len() >= most {
            found.push(one.start()..text.len());
            break;
        }
        found.push(one.range());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_matches_in_a_long_text_take_the_rest_of_it() {
        let regex = compile("a.*b|a").unwrap();
        assert_eq!(find_within(30, &regex, "a-a-a-a-a-"), [0..1, 2..3, 4..5, 6..10]);
        assert_eq!(find_within(60, &regex, "a-a-a-a-a-").len(), 5);
    }
}
