//! Which characters may stand outside quotes in a command line.

/// May it stand outside quotes as a part of a word, although it is not ASCII? In the encodings of some locales the bytes
/// 85 and A0 are blanks by themselves, and a shell that runs under one would divide the word there.
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
