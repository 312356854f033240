//! A granted prefix: the first words of a command. It is compared word by word, never letter by letter, and those that
//! would cover anything at all cannot be made.

use std::fmt;

use thiserror::Error;

use super::reader::PlainCommand;
use super::{Surroundings, harmless, head};

/// The longest prefix.
const MAX_BYTES: usize = 256;

/// Words with which a command begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// INVARIANT: at least one; each is plain, so that the shell reads it as it is written.
    words: Vec<String>,
}

/// Why a text is not taken as a prefix. The single call may be approved all the same.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PrefixError {
    /// No words.
    #[error("the prefix is empty; name a program, and a subcommand if it has any")]
    Empty,
    /// Too many bytes.
    #[error("the prefix is longer than {MAX_BYTES} bytes; name the program and its subcommand only")]
    TooLong,
    /// Something that the shell would not read as it is written.
    #[error("the prefix must not contain {found:?}; use plain words of one command")]
    Character {
        /// The first of its kind.
        found: char,
    },
    /// The first word is an option or an assignment.
    #[error("the prefix must begin with the name of a program")]
    NoProgram,
    /// Whoever may run this may run anything.
    #[error("`{program}` {reason}, so that a prefix of it would cover everything; approve such calls one by one")]
    Unsafe {
        /// The first word.
        program: String,
        /// What it does.
        reason: &'static str,
    },
    /// An argument is not known to be harmless, and might be given a value by what follows the prefix.
    #[error("{escape}, so that a prefix with it would cover too much; approve such calls one by one")]
    Escape {
        /// Which argument.
        escape: String,
    },
}

impl Prefix {
    /// Reads `cargo `, `npm run test:unit`, and the forms `cargo:*`, `cargo *` and `cargo {args}` that mean the same as
    /// `cargo`.
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

    /// The words.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Does the command begin with these words, written plainly?
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

/// Read by every shell as itself, wherever it stands.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_-./+@%,:=".contains(letter)
}
