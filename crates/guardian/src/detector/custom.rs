//! Expressions of one's own: compiled within limits, and searched for within limits.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

use super::DetectorError;

/// How large an expression may become when it is compiled.
const LARGEST: usize = 1 << 20;
/// How deep its groups may go.
const DEEPEST: u32 = 64;
/// How many bytes may be gone through for one text. To find one match all that follows may have to be looked at, so many
/// matches in a long text could otherwise cost the square of its length.
const MAX_WORK: usize = 1 << 30;
/// Texts in which an expression could match nothing at all.
const PROBES: [&str; 7] = ["", "a", "A", "0", " ", "a b", "a\nb"];

/// Compiles it, refusing one that is too large or that a text of no length matches.
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

/// Where it matches. When there is too much to do, all that is left of the text counts as found.
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
