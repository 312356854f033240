//! Prompts for secrets and confirmations. Without a terminal, secrets come from standard input and confirmations from
//! `--yes`.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use toolgate_model::secret::Secret;
use zeroize::Zeroizing;

use crate::command::Failure;
use crate::output::clean;

const INPUT_LIMIT: u64 = 1024 * 1024;

/// Whether there is a terminal to prompt at.
pub fn interactive() -> bool {
    io::stdin().is_terminal()
}

/// Prompts for a secret without echo, or reads all of standard input without its last line end. `None` if it is empty.
pub fn secret(question: &str) -> Result<Option<Secret>, Failure> {
    let text = if interactive() {
        rpassword::prompt_password(format!("{question}: ")).map_err(|error| Failure::io("the terminal", error))?
    } else {
        without_line_end(standard_input()?)
    };
    Ok(if text.is_empty() { None } else { Some(Secret::new(text)) })
}

pub fn standard_input() -> Result<Zeroizing<String>, Failure> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(8 * 1024));
    let read = io::stdin().lock().take(INPUT_LIMIT + 1).read_to_end(&mut bytes);
    let length = read.map_err(|error| Failure::io("standard input", error))?;
    if u64::try_from(length).unwrap_or(u64::MAX) > INPUT_LIMIT {
        return Err(Failure::Said(format!("standard input is longer than {INPUT_LIMIT} bytes")));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err(Failure::Said("standard input is not valid UTF-8".to_owned())),
    }
}

/// Returns an error unless `--yes` was given or the user answers `y`.
pub fn confirm(consequence: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let consequence = clean(consequence);
    if !interactive() {
        return Err(Failure::Usage(format!(
            "{consequence}; there is no terminal to confirm it at; pass --yes to confirm"
        )));
    }
    let mut stderr = io::stderr().lock();
    let asked = write!(stderr, "{consequence}. Continue? [y/N] ").and_then(|()| stderr.flush());
    asked.map_err(|error| Failure::io("the terminal", error))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::io("the terminal", error))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Said("nothing was changed".to_owned())),
    }
}

/// Removes one line end, which the shell or the editor added.
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
