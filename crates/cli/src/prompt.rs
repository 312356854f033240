//! Asking the person: secrets without showing them, and whether something that cannot be undone is meant. Where nobody
//! sits at a terminal, secrets come from standard input and consent from `--yes`.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use toolgate_model::secret::Secret;
use zeroize::Zeroizing;

use crate::command::Failure;
use crate::output::clean;

/// The most that is read from standard input.
const INPUT_LIMIT: u64 = 1024 * 1024;

/// Whether a person can be asked.
pub fn interactive() -> bool {
    io::stdin().is_terminal()
}

/// A secret, typed without being shown, or else all of standard input up to its last line end. `None` where it is empty.
pub fn secret(question: &str) -> Result<Option<Secret>, Failure> {
    let text = if interactive() {
        rpassword::prompt_password(format!("{question}: ")).map_err(|error| Failure::io("the terminal", error))?
    } else {
        without_line_end(standard_input()?)
    };
    Ok(if text.is_empty() { None } else { Some(Secret::new(text)) })
}

/// All of standard input, as text.
pub fn standard_input() -> Result<Zeroizing<String>, Failure> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(8 * 1024));
    let read = io::stdin().lock().take(INPUT_LIMIT + 1).read_to_end(&mut bytes);
    let length = read.map_err(|error| Failure::io("standard input", error))?;
    if u64::try_from(length).unwrap_or(u64::MAX) > INPUT_LIMIT {
        return Err(Failure::Said(format!("standard input is longer than {INPUT_LIMIT} bytes")));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err(Failure::Said("standard input is not UTF-8 text".to_owned())),
    }
}

/// Goes on only with consent: given by `--yes`, or by a person who answers `y`.
pub fn confirm(consequence: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let consequence = clean(consequence);
    if !interactive() {
        return Err(Failure::Usage(format!("{consequence}; without a terminal to ask at, say --yes if that is meant")));
    }
    let mut stderr = io::stderr().lock();
    let asked = write!(stderr, "{consequence}. Go on? [y/N] ").and_then(|()| stderr.flush());
    asked.map_err(|error| Failure::io("the terminal", error))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::io("the terminal", error))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Said("nothing was changed".to_owned())),
    }
}

/// One line end belongs to how the text was sent, not to the text.
fn without_line_end(text: Zeroizing<String>) -> String {
    let line = text.strip_suffix('\n').unwrap_or(&text);
    line.strip_suffix('\r').unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_end_is_taken_off_and_no_more() {
        for (given, kept) in [("a\n", "a"), ("a\r\n", "a"), ("a", "a"), (" a \n\n", " a \n"), ("\n", ""), ("", "")] {
            assert_eq!(without_line_end(Zeroizing::new(given.to_owned())), kept);
        }
    }
}
