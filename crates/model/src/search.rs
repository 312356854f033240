//! Search in stores of texts: which words a text has, and how well it matches a query. Both engines of the ledger only keep
//! numbers of words, so that the same texts are found in the same order on both.

pub use self::ranking::{Corpus, Posting, rank};
pub use self::words::{QUERY_LIMIT, Words, query_words};

mod ranking;
mod words;
