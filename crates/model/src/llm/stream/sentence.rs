//! Where a text can be judged as far as it came.

/// The most characters that are held back.
const LONGEST: usize = 400;

/// Whether a text ends with a sentence or a line, or is long enough.
pub(super) fn ends(text: &str) -> bool {
    if text.len() >= LONGEST && text.chars().count() >= LONGEST {
        return true;
    }
    let written = text.trim_end_matches([' ', '\t', '"', '\'', ')', ']', '*', '_', '\u{201d}', '\u{2019}', '\u{bb}']);
    written.ends_with(['.', '!', '?', '\n', '\u{2026}', '\u{3002}', '\u{ff01}', '\u{ff1f}'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_at_its_mark_a_line_at_its_end_and_a_long_text_anyway() {
        for complete in ["Yes.", "He said \"no!\"", "**Why?** ", "a line\n", "\u{306f}\u{3044}\u{3002}"] {
            assert!(ends(complete), "{complete}");
        }
        for incomplete in ["", "Yes", "3.5", "a, b", "\u{306f}\u{3044}"] {
            assert!(!ends(incomplete), "{incomplete}");
        }
        assert!(ends(&"x".repeat(LONGEST)));
        assert!(!ends(&"\u{e9}".repeat(LONGEST - 1)));
    }
}
