//! Why a command line needs a person. No message repeats more of the line than the name of a program or an option.

use thiserror::Error;

use super::reader::{MAX_BYTES, MAX_COMMANDS};

/// Why a command line cannot be approved automatically.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Objection {
    #[error("the command line is empty; there is nothing to approve")]
    Empty,
    #[error("the command line exceeds {MAX_BYTES} bytes; a person must review it")]
    TooLong,
    #[error("the command line has more than {MAX_COMMANDS} commands; a person must review it")]
    TooMany,
    /// A character that is invisible or displayed at another position.
    #[error("the character U+{:04X} is invisible or misleading; a person must review it", u32::from(*found))]
    Character { found: char },
    /// Shell syntax whose effect is not determined by the text.
    #[error("{construct}; a person must review it")]
    Construct {
        /// The syntax, and what it does.
        construct: &'static str,
    },
    /// The text ends early, or has an operator with nothing before it.
    #[error("{fault}; a person must review it")]
    Incomplete { fault: &'static str },
    #[error("no prefix covers `{program}` with these arguments")]
    NotCovered {
        /// The first word.
        program: String,
    },
    /// A granted command with an argument that is not covered.
    #[error("`{program}` is covered, but {beyond}; a person must review it")]
    Beyond {
        /// The first word.
        program: String,
        /// The argument, and why it is not covered.
        beyond: String,
    },
}
