//! The characters that are allowed outside quotes in a command line.

/// Whether a non-ASCII character may be part of a word outside quotes. In the encodings of some locales the bytes 85
/// and A0 are blanks, and a shell under one would split the word there.
pub(super) fn is_plain_beyond_ascii(letter: char) -> bool {
    let mut buffer = [0; 4];
    letter.is_alphanumeric() && !letter.encode_utf8(&mut buffer).bytes().any(|byte| matches!(byte, 0x85 | 0xa0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_some_locale_would_divide_are_not_plain() {
        assert!(is_plain_beyond_ascii('ö') && is_plain_beyond_ascii('漢'));
        assert!(!is_plain_beyond_ascii('à') && !is_plain_beyond_ascii('…') && !is_plain_beyond_ascii('✓'));
    }
}
