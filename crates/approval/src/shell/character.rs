//! The characters that are allowed in a command line, and those that are allowed outside quotes.

/// Whether a character is displayed as what it is. Newlines and tabs are; other control characters, zero-width and
/// direction marks, and blanks other than the ASCII one mislead the reader.
pub(crate) fn is_honest(letter: char) -> bool {
    if letter.is_ascii() {
        return matches!(letter, '\n' | '\t' | ' '..='~');
    }
    !(letter.is_control() || letter.is_whitespace() || is_invisible(letter))
}

/// Whether a non-ASCII character may be part of a word outside quotes. In the encodings of some locales the bytes 85
/// and A0 are blanks, and a shell under one would split the word there.
pub(super) fn is_plain_beyond_ascii(letter: char) -> bool {
    let mut buffer = [0; 4];
    letter.is_alphanumeric() && !letter.encode_utf8(&mut buffer).bytes().any(|byte| matches!(byte, 0x85 | 0xa0))
}

/// Characters without a visible shape: fillers, joiners, variation selectors, direction marks, tags, private use and
/// noncharacters.
fn is_invisible(letter: char) -> bool {
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

#[cfg(test)]
mod tests {
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
    fn letters_that_some_locale_would_divide_are_not_plain() {
        assert!(is_plain_beyond_ascii('ö') && is_plain_beyond_ascii('漢'));
        assert!(!is_plain_beyond_ascii('à') && !is_plain_beyond_ascii('…') && !is_plain_beyond_ascii('✓'));
    }
}
