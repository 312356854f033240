//! A granted prefix: the first words of a command. It is compared word by word, not by characters, and a prefix that
//! would cover everything cannot be created.

use std::fmt;

use thiserror::Error;

use super::reader::PlainCommand;
use super::{Surroundings, harmless, head};

/// The maximum length.
const MAX_BYTES: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// INVARIANT: at least one; each is plain, so that the shell reads it as it is written.
    words: Vec<String>,
}

/// Why a prefix is rejected. The single call may still be approved.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PrefixError {
    #[error("the prefix is empty; use a program, with a subcommand if it has any")]
    Empty,
    #[error("the prefix exceeds {MAX_BYTES} bytes; use only the program and its subcommand")]
    TooLong,
    /// A character that the shell does not read literally.
    #[error("the prefix must not contain {found:?}; use plain words of one command")]
    Character { found: char },
    /// The first word is an option or an assignment.
    #[error("the prefix must begin with the name of a program")]
    NoProgram,
    /// A program that can run anything.
    #[error("`{program}` {reason}, so a prefix would cover everything; approve such calls one by one")]
    Unsafe {
        program: String,
        /// What it does.
        reason: &'static str,
    },
    /// An argument that is not known to be harmless, and that may take what follows the prefix as its value.
    #[error("{escape}, so a prefix with it would cover too much; approve such calls one by one")]
    Escape { escape: String },
}

impl Prefix {
    /// Parses `cargo `, `npm run test:unit`, and the forms `cargo:*`, `cargo *` and `cargo {args}`, which mean the same
    /// as `cargo`.
    pub fn parse(text: &str) -> Result<Self, PrefixError> {
        if text.len() > MAX_BYTES {
            return Err(PrefixError::TooLong);
        }
        let text = text.trim_matches([' ', '\t']);
        let text = text.strip_suffix(":*").unwrap_or(text);
        let mut words: Vec<&str> = text.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        if words.last().is_some_and(|last| *last == "*" || (last.starts_with('{') && last.ends_with('}'))) {
            words.pop();
        }
        let Some(&program) = words.first() else { return Err(PrefixError::Empty) };
        if let Some(found) = words.iter().flat_map(|word| word.chars()).find(|&letter| !is_plain(letter)) {
            return Err(PrefixError::Character { found });
        }
        if program.starts_with(['-', '+']) || program.contains('=') {
            return Err(PrefixError::NoProgram);
        }
        if let Some(reason) = head::objection(program) {
            return Err(PrefixError::Unsafe { program: program.to_owned(), reason });
        }
        if let Some(beyond) = harmless::find(&words, words.len(), Surroundings::UNKNOWN) {
            return Err(PrefixError::Escape { escape: beyond.to_string() });
        }
        Ok(Self { words: words.into_iter().map(str::to_owned).collect() })
    }

    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Whether the command begins with these words, written without quotes and escapes.
    pub(super) fn begins(&self, command: &PlainCommand) -> bool {
        command.words.len() >= self.words.len()
            && self.words.iter().zip(&command.words).all(|(own, word)| word.plain && word.text == *own)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words.join(" "))
    }
}

/// Read literally by every shell at any position.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_-./+@%,:=".contains(letter)
}
