//! The order of what was found: BM25, by how rare the words of the query are, how often they occur and how long the text is.

use std::collections::BTreeMap;

/// How fast more occurrences of a word stop to matter.
const SATURATION: f64 = 1.2;
/// How much the length of a text matters.
const LENGTH: f64 = 0.75;

/// What is searched: texts of one owner only, because what others have stored must not influence scores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Corpus {
    pub texts: u64,
    /// The number of words of all of them.
    pub words: u64,
}

/// A text with a word of the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting<T> {
    pub text: T,
    pub occurrences: u32,
    /// The number of words of the text.
    pub length: u32,
}

/// The texts with any of the words, best first; of equally good ones the greatest, which is the newest. `postings` has the
/// texts of each word.
#[expect(clippy::cast_precision_loss, reason = "counts of texts and words are far below 2^52")]
pub fn rank<T: Ord + Clone>(corpus: Corpus, postings: &[Vec<Posting<T>>]) -> Vec<(T, f64)> {
    let texts = corpus.texts.max(1) as f64;
    let average = (corpus.words.max(1) as f64 / texts).max(1.0);
    let mut scores: BTreeMap<&T, f64> = BTreeMap::new();
    for of_word in postings {
        let with = of_word.len() as f64;
        let rarity = (1.0 + ((texts - with).max(0.0) + 0.5) / (with + 0.5)).ln();
        for Posting { text, occurrences, length } in of_word {
            let (occurrences, length) = (f64::from(*occurrences), f64::from(*length));
            let norm = SATURATION * (1.0 - LENGTH + LENGTH * length / average);
            *scores.entry(text).or_default() += rarity * occurrences * (SATURATION + 1.0) / (occurrences + norm);
        }
    }
    let mut ranked: Vec<(T, f64)> = scores.into_iter().map(|(text, score)| (text.clone(), score)).collect();
    ranked.sort_by(|(left, of_left), (right, of_right)| of_right.total_cmp(of_left).then_with(|| right.cmp(left)));
    ranked
}

#[cfg(test)]
mod tests {
    use super::super::{Words, query_words};
    use super::*;

    fn search(texts: &[&str], query: &str) -> Vec<usize> {
        let words: Vec<Words> = texts.iter().map(|text| Words::of(text)).collect();
        let total = words.iter().map(|words| u64::from(words.total)).sum();
        let corpus = Corpus { texts: texts.len() as u64, words: total };
        let postings: Vec<Vec<Posting<usize>>> = query_words(query)
            .iter()
            .map(|word| {
                let with = words.iter().enumerate().filter_map(|(text, words)| {
                    let occurrences = *words.occurrences.get(word)?;
                    Some(Posting { text, occurrences, length: words.total })
                });
                with.collect()
            })
            .collect();
        rank(corpus, &postings).into_iter().map(|(text, _)| text).collect()
    }

    #[test]
    fn rare_words_short_texts_and_repetitions_come_first() {
        let texts = ["cat cat cat", "the cat sat on the mat", "a zebra in the long grass of the plain", "cat", "dog"];
        assert_eq!(search(&texts, "zebra cat"), [2, 0, 3, 1], "the rare word decides");
        assert_eq!(search(&texts, "cat"), [0, 3, 1]);
        assert_eq!(search(&texts, "zebra cat dog unknown").len(), 5);
        assert!(search(&texts, "unknown").is_empty());
    }

    #[test]
    fn of_equally_good_texts_the_newest_is_first() {
        assert_eq!(search(&["same words", "same words", "same words"], "words"), [2, 1, 0]);
    }

    #[test]
    fn a_word_that_all_texts_have_still_counts_a_little() {
        assert_eq!(search(&["the a", "the b b"], "the b"), [1, 0]);
    }
}
