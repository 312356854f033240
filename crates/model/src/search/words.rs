//! The words of a text: compatibility forms are unified, case and accents removed, and everything that is no letter or
//! digit separates. Scripts that are written without blanks are split into pairs of letters.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The maximum number of different words of a query; the others are ignored.
pub const QUERY_LIMIT: usize = 24;
/// The maximum length of a word, in characters; the rest is ignored.
const WORD_LIMIT: usize = 64;

/// How often each word occurs in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    pub occurrences: BTreeMap<String, u32>,
    /// The number of words, counting repetitions.
    pub total: u32,
}

impl Words {
    pub fn of(text: &str) -> Self {
        let mut words = Self::default();
        each_word(text, |word| {
            words.total = words.total.saturating_add(1);
            let occurrences = words.occurrences.entry(word).or_default();
            *occurrences = occurrences.saturating_add(1);
        });
        words
    }
}

/// The different words of a query, in their order.
pub fn query_words(query: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(query, |word| {
        if words.len() < QUERY_LIMIT && !words.contains(&word) {
            words.push(word);
        }
    });
    words
}

fn each_word(text: &str, mut see: impl FnMut(String)) {
    let mut word = String::new();
    let mut length = 0;
    let mut unspaced = Vec::new();
    let plain = text.nfkd().filter(|letter| !is_accent(*letter)).nfc().flat_map(char::to_lowercase);
    for letter in plain.chain([' ']) {
        if is_unspaced(letter) {
            end(&mut word, &mut length, &mut see);
            unspaced.push(letter);
        } else {
            see_pairs(&mut unspaced, &mut see);
            if !(letter.is_alphanumeric() || is_combining_mark(letter)) {
                end(&mut word, &mut length, &mut see);
            } else if length < WORD_LIMIT {
                word.push(letter);
                length += 1;
            }
        }
    }
}

fn end(word: &mut String, length: &mut usize, see: &mut impl FnMut(String)) {
    if !word.is_empty() {
        see(std::mem::take(word));
    }
    *length = 0;
}

fn see_pairs(letters: &mut Vec<char>, see: &mut impl FnMut(String)) {
    match letters.as_slice() {
        [] => return,
        [single] => see(single.to_string()),
        several => several.windows(2).for_each(|pair| see(pair.iter().collect())),
    }
    letters.clear();
}

/// Accents of the European scripts. In others, marks are vowels and tell words apart.
fn is_accent(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

/// Letters of scripts that are written without blanks between words: Chinese, Japanese, Thai, Lao, Burmese, Khmer.
fn is_unspaced(letter: char) -> bool {
    matches!(u32::from(letter),
        0x0e01..=0x0ecd | 0x1000..=0x109f | 0x1780..=0x17d3 | 0x3005..=0x3007 | 0x3041..=0x30ff | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x323af)
        && (letter.is_alphabetic() || is_combining_mark(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_however_they_are_written() {
        for (text, words) in [
            ("The zebra, the ZEBRA!", &["the", "zebra", "the", "zebra"][..]),
            ("Café CAFE\u{301} ﬁle", &["cafe", "cafe", "file"]),
            ("E-1042 foo_bar.rs a@b.example", &["e", "1042", "foo", "bar", "rs", "a", "b", "example"]),
            ("日本語 x 語", &["日本", "本語", "x", "語"]),
            ("हिन्दी में", &["हिन्दी", "में"]),
            ("straße ÅNGSTRÖM İ", &["straße", "angstrom", "i"]),
            ("  \u{200b}--  ", &[]),
        ] {
            let mut seen = Vec::new();
            each_word(text, |word| seen.push(word));
            assert_eq!(seen, words, "{text:?}");
        }
    }

    #[test]
    fn words_are_counted_and_long_ones_are_cut() {
        let words = Words::of("a b a");
        assert_eq!((words.total, words.occurrences.get("a"), words.occurrences.get("b")), (3, Some(&2), Some(&1)));
        let long = Words::of(&"x".repeat(1_000));
        assert_eq!(long.occurrences.keys().map(String::len).collect::<Vec<_>>(), [WORD_LIMIT]);
    }

    #[test]
    fn a_query_has_each_word_once_and_not_too_many() {
        assert_eq!(query_words("zebra cat Zebra"), ["zebra", "cat"]);
        let long: String = (0..100).map(|number| format!("w{number} ")).collect();
        assert_eq!(query_words(&long).len(), QUERY_LIMIT);
        assert!(query_words("?!").is_empty());
    }
}
