//! Why a command line is left to a person. No message repeats more of the line than the name of a program or an option.

use thiserror::Error;

use super::reader::{MAX_BYTES, MAX_COMMANDS};

/// What keeps a command line from being approved without a person.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Objection {
    /// Nothing to run.
    #[error("there is no command; nothing can be approved")]
    Empty,
    /// More than is read.
    #[error("the command line is longer than {MAX_BYTES} bytes; a person has to look at it")]
    TooLong,
    /// More than are judged.
    #[error("there are more than {MAX_COMMANDS} commands; a person has to look at them")]
    TooMany,
    /// A character that a person would not see, or would see elsewhere.
    #[error("the character U+{:04X} cannot be seen as it is; a person has to look at it", u32::from(*found))]
    Character {
        /// The first of its kind.
        found: char,
    },
    /// A piece of the shell's language whose effect cannot be told from the text.
    #[error("{construct}; a person has to look at it")]
    Construct {
        /// The piece, and what it does.
        construct: &'static str,
    },
    /// The text ends where more must follow, or has an operator with nothing before it.
    #[error("{fault}; a person has to look at it")]
    Incomplete {
        /// What is missing.
        fault: &'static str,
    },
    /// A command that nobody has granted.
    #[error("`{program}` with these arguments is covered by none of the prefixes")]
    NotCovered {
        /// Its first word.
        program: String,
    },
    /// A granted command, with an argument that is not covered.
    #[error("`{program}` is covered, but {beyond}; a person has to look at it")]
    Beyond {
        /// Its first word.
        program: String,
        /// Which argument, and why it is not.
        beyond: String,
    },
}
