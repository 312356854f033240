//! Converts names and texts of a document to valid ones.

use toolgate_model::text::check_line;

/// What the model takes as a description and as a line, in bytes.
const DESCRIPTION_LIMIT: usize = 8 * 1024;
const LINE_LIMIT: usize = 256;
/// The longest identifier, in bytes.
const IDENTIFIER_LIMIT: usize = 128;

/// A text of several lines for people; the flag says whether it had to be changed.
pub(super) fn description(text: &str) -> (Option<String>, bool) {
    let kept: String = text.chars().filter(|&letter| matches!(letter, '\n' | '\t') || is_shown(letter)).collect();
    let kept = shortened(kept.trim(), DESCRIPTION_LIMIT);
    let changed = kept != text.replace("\r\n", "\n").trim();
    (Some(kept).filter(|kept| !kept.is_empty()), changed)
}

/// A text of one line; the flag says whether it had to be changed.
pub(super) fn line(text: &str) -> (Option<String>, bool) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let kept: String = words.join(" ").chars().filter(|&letter| is_shown(letter)).collect();
    let kept = shortened(&kept, LINE_LIMIT);
    let changed = kept != text.trim();
    (Some(kept).filter(|kept| !kept.is_empty()), changed)
}

/// An identifier like the text: a slash becomes a dot, what else does not fit becomes `_`.
pub(super) fn identifier(text: &str) -> Option<String> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._:@-".contains(letter);
    let letter = |letter: char| match letter {
        '/' => '.',
        other if fits(other) => other,
        _ => '_',
    };
    let mut name: String = text.trim().chars().map(letter).collect();
    for twice in ["__", ".."] {
        while name.contains(twice) {
            name = name.replace(twice, twice.get(1..).unwrap_or_default());
        }
    }
    let name = name.trim_matches(['.', '_']);
    let name: String = name.chars().take(IDENTIFIER_LIMIT).collect();
    Some(name).filter(|name| !name.is_empty())
}

/// An identifier in small letters with dashes: `Payments API (v2)` is `payments-api-v2`.
pub(super) fn slug(text: &str) -> Option<String> {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { ' ' };
    let plain: String = text.chars().map(letter).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let slug: String = words.join("-").chars().take(64).collect();
    Some(slug.trim_matches('-').to_owned()).filter(|slug| !slug.is_empty())
}

/// A name with something behind it, within the length that a name may have.
pub(super) fn with_suffix(name: &str, suffix: &str) -> String {
    let room = IDENTIFIER_LIMIT.saturating_sub(suffix.len());
    let kept: String = name.chars().take(room).collect();
    format!("{kept}{suffix}")
}

/// The model refuses what cannot be seen; the same rule decides here.
fn is_shown(letter: char) -> bool {
    check_line(letter.encode_utf8(&mut [0; 4]), 4).is_ok()
}

/// The beginning of a text, with a mark where something is missing.
fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        if kept.len() + letter.len_utf8() + '…'.len_utf8() > limit {
            break;
        }
        kept.push(letter);
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_what_names_may_have() {
        assert_eq!(identifier("repos/get-content").as_deref(), Some("repos.get-content"));
        assert_eq!(identifier(" list all pets! ").as_deref(), Some("list_all_pets"));
        assert_eq!(identifier("//"), None);
        assert_eq!(identifier(&"é".repeat(9)), None);
        assert_eq!(identifier(&"x".repeat(200)).unwrap().len(), 128);
        assert_eq!(slug("Payments API (v2)").as_deref(), Some("payments-api-v2"));
        assert_eq!(with_suffix(&"x".repeat(128), ".1234").len(), 128);
    }

    #[test]
    fn what_is_not_shown_is_taken_out_of_texts_and_told() {
        assert_eq!(description("One\r\n\ttwo"), (Some("One\n\ttwo".to_owned()), false));
        assert_eq!(description("a\u{200b}b"), (Some("ab".to_owned()), true));
        assert_eq!(line("one\ntwo"), (Some("one two".to_owned()), true));
        assert_eq!(line("  "), (None, false));
        let (long, changed) = description(&"ü".repeat(5_000));
        assert!(changed && long.unwrap().len() <= DESCRIPTION_LIMIT);
    }
}
