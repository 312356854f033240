//! Reads the lines of the host. A line that is too long is skipped.

use std::io;

use tokio::sync::mpsc;

use super::protocol::{COMMAND_QUEUE, Incoming, LineError, MAX_LINE};
use crate::command::line_reader::{self, Line, TooLong};

pub(super) type Command = Result<Incoming, LineError>;

/// The commands on standard input, until it ends.
pub(super) fn commands() -> io::Result<mpsc::Receiver<Command>> {
    line_reader::standard_input("host-input", COMMAND_QUEUE, MAX_LINE, parsed)
}

fn parsed(line: Line) -> Command {
    match line {
        Ok(bytes) => Incoming::parse(&bytes),
        Err(TooLong) => Err(LineError::TooLong),
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(input: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        line_reader::read(&mut BufReader::new(input), MAX_LINE, |line| {
            found.push(match parsed(line) {
                Ok(command) => format!("{command:?}"),
                Err(LineError::TooLong) => "too long".to_owned(),
                Err(_) => "bad".to_owned(),
            });
            true
        });
        found
    }

    #[test]
    fn every_line_is_a_command_or_one_error_and_the_last_needs_no_end() {
        assert_eq!(all(b""), [""; 0]);
        assert_eq!(all(b"{\"type\":\"ping\"}\nnonsense\n\n{\"type\":\"stop\"}\r\n"), ["Ping", "bad", "bad", "Stop"]);
        assert_eq!(all(b"{\"type\":\"ping\"}"), ["Ping"]);
        assert_eq!(all(b"{\"type\":\"ping\"}\n{\"type\":"), ["Ping", "bad"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_one_error_and_the_next_is_read() {
        let mut input = b"{\"type\":\"ping\"}".to_vec();
        input.resize(MAX_LINE, b' ');
        assert_eq!(all(&input), ["Ping"]);
        input.push(b' ');
        input.extend_from_slice(b"\n{\"type\":\"ping\"}\n");
        assert_eq!(all(&input), ["too long", "Ping"]);
    }
}
