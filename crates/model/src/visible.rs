//! Text as it is shown to approvers: invisible and misleading characters are escaped.

/// The text with everything written as `\u{...}` that has no shape of its own: controls, marks without width, direction
/// marks, tags, blanks other than the ASCII blank, variation selectors, private and unassigned characters, and accents
/// that stand by themselves, because they look like the letter that has them. Line ends and tabs stay as they are. A
/// backslash that would begin such a sequence is written out too: every `\u{` in the output is one of these characters.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        let feigns = letter == '\\' && rest.as_str().starts_with("u{");
        if feigns || !is_visible(letter) {
            shown.extend(letter.escape_unicode());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Words that mix Latin letters with similar letters of another script.
pub fn mixed_scripts(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| word.chars().any(is_latin) && word.chars().any(looks_latin))
        .map(str::to_owned)
        .collect();
    words.sort();
    words.dedup();
    words
}

/// The first invisible character, except those with legitimate uses: a CRLF newline, and the selector that makes the
/// symbol before it an emoji.
pub fn first_hidden(text: &str) -> Option<char> {
    let mut before = None;
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        let honest = match letter {
            '\r' => rest.as_str().starts_with('\n'),
            '\u{fe0f}' => before.is_some_and(|before: char| !before.is_ascii() && !before.is_alphanumeric()),
            _ => is_honest(letter),
        };
        if !honest {
            return Some(letter);
        }
        before = Some(letter);
    }
    None
}

/// Is it shown as what it is? Line ends and tabs are; other controls, marks without width, direction marks and blanks
/// that are not the ASCII blank deceive a reader.
pub fn is_honest(letter: char) -> bool {
    if letter.is_ascii() {
        return matches!(letter, '\n' | '\t' | ' '..='~');
    }
    !(letter.is_control() || letter.is_whitespace() || is_invisible(letter))
}

fn is_visible(letter: char) -> bool {
    if letter.is_ascii() {
        return is_honest(letter);
    }
    is_honest(letter) && is_assigned(letter) && !is_lone_accent(letter)
}

/// Without a shape of its own: fillers, joiners, variation selectors, direction marks, tags, private and no characters.
pub(crate) fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{ffff}'
            | '\u{13430}'..='\u{1345f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..
    )
}

/// The standard library knows which characters are printable, and reveals it only by how it escapes them. The letter
/// before keeps it from escaping marks that belong to one.
fn is_assigned(letter: char) -> bool {
    let pair: String = ['a', letter].into_iter().collect();
    !pair.escape_debug().any(|written| written == '\\')
}

/// Accents for letters of European scripts. Marks of other scripts have no letters that contain them.
fn is_lone_accent(letter: char) -> bool {
    matches!(
        letter,
        '\u{300}'..='\u{36f}'
            | '\u{483}'..='\u{489}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe20}'..='\u{fe2f}'
    )
}

fn is_latin(letter: char) -> bool {
    letter.is_ascii_alphabetic() || (letter.is_alphabetic() && matches!(letter, '\u{c0}'..='\u{24f}'))
}

/// Greek, Cyrillic, Armenian, Cherokee, mathematical and full-width letters.
fn looks_latin(letter: char) -> bool {
    letter.is_alphabetic()
        && matches!(
            letter,
            '\u{370}'..='\u{58f}'
                | '\u{13a0}'..='\u{13ff}'
                | '\u{1c80}'..='\u{1c8f}'
                | '\u{1f00}'..='\u{1fff}'
                | '\u{2de0}'..='\u{2dff}'
                | '\u{a640}'..='\u{a69f}'
                | '\u{ab70}'..='\u{abbf}'
                | '\u{ff21}'..='\u{ff5a}'
                | '\u{1d400}'..='\u{1d7ff}'
        )
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_cannot_be_seen_is_not_honest() {
        for letter in "\0\u{1b}\r\u{b}\u{7f}\u{85}\u{a0}\u{ad}\u{2003}\u{200b}\u{202e}\u{2066}\u{3000}\u{feff}".chars()
        {
            assert!(!is_honest(letter), "{letter:?}");
        }
        assert!("ls -l\t'größe ✓ 漢字'\n".chars().all(is_honest));
    }

    #[test]
    fn what_a_person_can_see_stays_as_it_is() {
        for text in ["cargo build --all\n\tand 'größe' ✓ 漢字", "C:\\users\\u", "हिन्दी", "été"] {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn what_a_person_cannot_see_is_written_out() {
        for (text, shown) in [
            ("rm\u{200b} x", "rm\\u{200b} x"),
            ("a\u{a0}b", "a\\u{a0}b"),
            ("a\u{2003}b", "a\\u{2003}b"),
            ("\u{202e}fdp.exe", "\\u{202e}fdp.exe"),
            ("\u{1b}[2K", "\\u{1b}[2K"),
            ("a\rb", "a\\u{d}b"),
            ("a\u{e0041}b", "a\\u{e0041}b"),
            ("a\u{fe0f}b", "a\\u{fe0f}b"),
            ("a\u{e000}b", "a\\u{e000}b"),
            ("a\u{3164}b", "a\\u{3164}b"),
            ("e\u{301}", "e\\u{301}"),
            ("\u{378}", "\\u{378}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn a_text_cannot_feign_a_character_that_was_written_out() {
        assert_eq!(visible("\\u{200b}"), "\\u{5c}u{200b}");
        assert_ne!(visible("\\u{200b}"), visible("\u{200b}"));
    }

    #[test]
    fn words_of_two_scripts_are_told() {
        assert_eq!(mixed_scripts("gіt push exаmple.com"), ["exаmple", "gіt"]);
        assert_eq!(mixed_scripts("git push Привет Ελλάδα größe"), Vec::<String>::new());
    }

    #[test]
    fn hidden_characters_are_found_beside_their_honest_uses() {
        assert_eq!(first_hidden("line\r\nline ⚠\u{fe0f}"), None);
        assert_eq!(first_hidden("line\rline"), Some('\r'));
        assert_eq!(first_hidden("a\u{fe0f}"), Some('\u{fe0f}'));
        assert_eq!(first_hidden("ab\u{200d}c"), Some('\u{200d}'));
    }

    proptest! {
        #[test]
        fn different_texts_are_shown_differently(
            texts in proptest::collection::vec("[\\\\u{}0-9a-d\u{200b}\u{d}\u{1}é\u{301}]{0,6}", 2..40)
        ) {
            let mut shown = HashMap::new();
            for text in texts {
                if let Some(other) = shown.insert(visible(&text), text.clone()) {
                    prop_assert_eq!(other, text);
                }
            }
        }
    }
}
