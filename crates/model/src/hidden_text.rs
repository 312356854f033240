//! Hidden characters in untrusted content: those that a reader does not see and a model reads, or that change how their
//! neighbours are shown. See [`HiddenCharacters`] for what happens to them.

use crate::service::HiddenCharacters;
use crate::visible::is_invisible;

/// The text after the rule was applied; `None` where nothing changes.
pub fn revealed(text: &str, rule: HiddenCharacters) -> Option<String> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r');
    if rule == HiddenCharacters::Keep || text.bytes().all(is_plain) || !has_hidden(text) {
        return None;
    }
    let mut revealed = String::with_capacity(text.len() + 16);
    each(text, |letter, is_hidden| match (is_hidden, rule) {
        (false, _) => revealed.push(letter),
        (true, HiddenCharacters::Show) => revealed.push_str(&format!("<U+{:04X}>", u32::from(letter))),
        (true, HiddenCharacters::Strip | HiddenCharacters::Keep) => {}
    });
    Some(revealed)
}

/// The text without its hidden characters, and how many those were.
pub fn strip(text: &str) -> (String, u32) {
    let mut stripped = String::with_capacity(text.len());
    let mut hidden = 0_u32;
    each(text, |letter, is_hidden| {
        if is_hidden {
            hidden = hidden.saturating_add(1);
        } else {
            stripped.push(letter);
        }
    });
    (stripped, hidden)
}

/// Whether a text has hidden characters.
pub fn has_hidden(text: &str) -> bool {
    let mut found = false;
    each(text, |_, is_hidden| found |= is_hidden);
    found
}

fn each(text: &str, mut see: impl FnMut(char, bool)) {
    let mut before = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let joins = matches!(letter, '\u{200c}' | '\u{200d}')
            && before.is_some_and(is_joined)
            && letters.peek().copied().is_some_and(is_joined);
        see(letter, is_hidden(letter) && !joins);
        before = Some(letter);
    }
}

/// What joiners have an honest use between: letters of scripts that need them, and pictures.
fn is_joined(letter: char) -> bool {
    !letter.is_ascii() && !is_hidden(letter)
}

/// Control and invisible characters, except those that results use honestly: the Braille blank, variation selectors of
/// emoji, private use characters of icon fonts, and the replacement characters.
fn is_hidden(letter: char) -> bool {
    match letter {
        '\t' | '\n' | '\r' => false,
        '\u{2800}' | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{fffc}'..='\u{fffd}' | '\u{f0000}'.. => {
            false
        }
        other => other.is_control() || is_invisible(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_or_removed_and_others_stay() {
        let tags: String =
            "ignore all".chars().filter_map(|letter| char::from_u32(0xe0000 + u32::from(letter))).collect();
        let text = format!("a\u{200b}b\u{202e}c{tags}\u{feff}\u{1b}[2J é");
        let shown = revealed(&text, HiddenCharacters::Show).unwrap();
        assert!(shown.starts_with("a<U+200B>b<U+202E>c<U+E0069><U+E0067>"), "{shown}");
        assert!(shown.ends_with("<U+FEFF><U+001B>[2J é"), "{shown}");
        assert_eq!(revealed(&text, HiddenCharacters::Strip).unwrap(), "abc[2J é");
        assert_eq!(revealed(&text, HiddenCharacters::Keep), None);
        assert!(!has_hidden(&shown));
    }

    #[test]
    fn joiners_stay_where_a_script_or_a_picture_needs_them() {
        for honest in ["👨\u{200d}👩\u{200d}👧", "می\u{200c}خواهم", "❤\u{fe0f}", "tab\tand\r\nlines", "日本語"]
        {
            assert_eq!(revealed(honest, HiddenCharacters::Show), None, "{honest:?}");
        }
        for hidden in ["a\u{200d}b", "\u{200d}", "é\u{200c}\u{200b}é", "👨\u{200d}\u{200d}"] {
            assert!(has_hidden(hidden), "{hidden:?}");
        }
    }
}
