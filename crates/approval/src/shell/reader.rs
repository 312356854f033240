//! Parses a command line as a list of plain commands, in one pass, or reports the construct that is more than that. The
//! language is a subset of what bash and sh agree on: literal words, `&&`, `||`, `;`, `|`, newlines, comments, and
//! redirections to no file.

use std::str::Chars;

use toolgate_model::visible::is_honest;

use super::Objection;
use super::character::is_plain_beyond_ascii;

/// The longest command line that is parsed.
pub const MAX_BYTES: usize = 16 * 1024;

/// The most commands in one line.
pub const MAX_COMMANDS: usize = 64;

/// One word as the program receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Without quotes and escapes.
    pub text: String,
    /// Whether it was written without quotes and escapes.
    pub plain: bool,
}

/// The separator before a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separator {
    First,
    /// `;` or a newline.
    Then,
    /// `&&`.
    And,
    /// `||`.
    Or,
    /// `|`.
    Pipe,
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainCommand {
    pub separator: Separator,
    /// The program, then its arguments; never empty.
    pub words: Vec<Word>,
}

impl PlainCommand {
    /// The part that may be shown anywhere: never the arguments, which may contain a secret.
    pub(super) fn program(&self) -> String {
        self.words.first().map(|word| word.text.chars().take(64).collect()).unwrap_or_default()
    }
}

/// Parses a whole command line.
pub fn read(text: &str) -> Result<Vec<PlainCommand>, Objection> {
    if text.len() > MAX_BYTES {
        return Err(Objection::TooLong);
    }
    if let Some(found) = text.chars().find(|&letter| !is_honest(letter)) {
        return Err(Objection::Character { found });
    }
    Reader { rest: text.chars() }.list()
}

struct Reader<'a> {
    rest: Chars<'a>,
}

impl Reader<'_> {
    fn list(mut self) -> Result<Vec<PlainCommand>, Objection> {
        let mut commands = Vec::new();
        let mut separator = Separator::First;
        loop {
            let words = self.command()?;
            if words.is_empty() {
                return match (self.peek(), separator) {
                    (None, Separator::First) => Err(Objection::Empty),
                    (None, Separator::Then) => Ok(commands),
                    (None, _) => Err(Objection::Incomplete { fault: "a command is missing at the end" }),
                    (Some('&'), _) => Err(Objection::Incomplete { fault: "there is an `&` with no command before it" }),
                    (Some(_), _) => {
                        Err(Objection::Incomplete { fault: "there is an operator with no command before it" })
                    }
                };
            }
            if commands.len() == MAX_COMMANDS {
                return Err(Objection::TooMany);
            }
            commands.push(PlainCommand { separator, words });
            match self.operator()? {
                Some(next) => separator = next,
                None => return Ok(commands),
            }
        }
    }

    /// Words and redirections, up to an operator, a newline or the end. Skips newlines before the first word.
    fn command(&mut self) -> Result<Vec<Word>, Objection> {
        let mut words: Vec<Word> = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some('\n') if words.is_empty() => {
                    self.rest.next();
                }
                None | Some('\n' | ';' | '&' | '|') => return Ok(words),
                Some('#') => self.skip_comment(),
                Some('(' | ')') => return construct("`(` opens a subshell, a function or a pattern"),
                Some('<') => return construct("`<` reads from a file, a text or another command"),
                Some('>') => self.redirection(&words)?,
                Some(_) => {
                    let word = self.word()?;
                    let numeric = word.text.bytes().all(|byte| byte.is_ascii_digit());
                    if numeric && matches!(self.peek(), Some('>' | '<')) {
                        if !word.plain || !matches!(word.text.as_str(), "1" | "2") || self.peek() != Some('>') {
                            return construct("only the streams 1 and 2 may be redirected");
                        }
                        self.redirection(&words)?;
                    } else if words.is_empty() && word.text.contains('=') {
                        return construct("an assignment before a command changes its environment");
                    } else {
                        words.push(word);
                    }
                }
            }
        }
    }

    /// The operator after a command: `None` at the end.
    fn operator(&mut self) -> Result<Option<Separator>, Objection> {
        let first = self.rest.next();
        let doubled = first.is_some() && self.peek() == first;
        match first {
            None => Ok(None),
            Some('\n' | ';') => Ok(Some(Separator::Then)),
            Some('&') if doubled => {
                self.rest.next();
                Ok(Some(Separator::And))
            }
            Some('|') if doubled => {
                self.rest.next();
                Ok(Some(Separator::Or))
            }
            Some('|') => Ok(Some(Separator::Pipe)),
            Some(_) => construct("a lone `&` runs a command in the background"),
        }
    }

    /// `>&1`, `>&2`, or `>` to `/dev/null`; the number before it has been read.
    fn redirection(&mut self, words: &[Word]) -> Result<(), Objection> {
        if words.is_empty() {
            return construct("a redirection precedes its command");
        }
        self.rest.next();
        let to_stream = self.peek() == Some('&');
        if to_stream {
            self.rest.next();
        } else {
            while matches!(self.peek(), Some(' ' | '\t')) {
                self.rest.next();
            }
        }
        let target = self.word()?;
        let allowed: &[&str] = if to_stream { &["1", "2"] } else { &["/dev/null"] };
        // After a number, another `>` or `<` would make the shell read the number as that one's.
        let ends = !matches!(self.peek(), Some('>' | '<' | '('));
        if target.plain && allowed.contains(&target.text.as_str()) && ends {
            return Ok(());
        }
        construct("`>` writes to something other than /dev/null, or to another stream")
    }

    /// One word, up to a blank or an operator. Empty if there is none.
    fn word(&mut self) -> Result<Word, Objection> {
        let mut word = Word { text: String::new(), plain: true };
        // The letter before, if it was written plainly: a tilde after it is literal.
        let mut before = None;
        while let Some(letter) = self.peek() {
            if matches!(letter, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')') {
                break;
            }
            self.rest.next();
            let mut plainly = None;
            match letter {
                '\'' => self.single_quoted(&mut word.text)?,
                '"' => self.double_quoted(&mut word.text)?,
                '\\' => match self.rest.next() {
                    None => return Err(Objection::Incomplete { fault: "a backslash at the end escapes nothing" }),
                    Some('\n') => {}
                    Some(escaped) if escaped.is_ascii() => word.text.push(escaped),
                    Some(_) => return construct("a backslash precedes a character that needs no escape"),
                },
                '$' => return construct("`$` expands to a value or runs a command"),
                '`' => return construct("a backtick runs a command"),
                '*' | '?' | '[' | ']' => return construct("`*`, `?` and `[` expand to file names"),
                '{' | '}' => return construct("`{` expands to several words, or groups commands"),
                '!' => return construct("`!` negates a command or repeats an earlier one"),
                '~' if !before.is_some_and(|before: char| before.is_ascii_alphanumeric() || "^~".contains(before)) => {
                    return construct("`~` expands to a directory");
                }
                plain if plain.is_ascii() || is_plain_beyond_ascii(plain) => plainly = Some(plain),
                _ => return construct("a non-ASCII character is outside quotes"),
            }
            match plainly {
                Some(plain) => word.text.push(plain),
                None => word.plain = false,
            }
            before = plainly;
        }
        Ok(word)
    }

    fn single_quoted(&mut self, text: &mut String) -> Result<(), Objection> {
        loop {
            match self.rest.next() {
                None => return Err(Objection::Incomplete { fault: "a single quote is not closed" }),
                Some('\'') => return Ok(()),
                Some(letter) => text.push(letter),
            }
        }
    }

    fn double_quoted(&mut self, text: &mut String) -> Result<(), Objection> {
        loop {
            match self.rest.next() {
                None => return Err(Objection::Incomplete { fault: "a double quote is not closed" }),
                Some('"') => return Ok(()),
                Some('$') => return construct("`$` expands to a value or runs a command, also in double quotes"),
                Some('`') => return construct("a backtick runs a command, also in double quotes"),
                // An interactive shell would repeat an earlier command here.
                Some('!') if !matches!(self.peek(), Some(' ' | '"')) => {
                    return construct("`!` may repeat an earlier command, also in double quotes");
                }
                Some('\\') => match self.peek() {
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => {
                        self.rest.next();
                        text.push(escaped);
                    }
                    Some('\n') => {
                        self.rest.next();
                    }
                    // Before anything else a backslash is literal.
                    _ => text.push('\\'),
                },
                Some(letter) => text.push(letter),
            }
        }
    }

    /// Blanks, and newlines escaped by a backslash.
    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => {
                    self.rest.next();
                }
                Some('\\') if self.rest.clone().nth(1) == Some('\n') => {
                    self.rest.next();
                    self.rest.next();
                }
                _ => return,
            }
        }
    }

    /// Up to the newline, which stays: a backslash does not escape it here.
    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|letter| letter != '\n') {
            self.rest.next();
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }
}

fn construct<T>(construct: &'static str) -> Result<T, Objection> {
    Err(Objection::Construct { construct })
}
