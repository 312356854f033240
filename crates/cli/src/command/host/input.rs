//! Reads the lines of the host. A line that is too long is skipped.

use std::io::{self, BufRead};

use tokio::sync::mpsc;

use super::protocol::{COMMAND_QUEUE, Incoming, LineError, MAX_LINE};

pub(super) type Command = Result<Incoming, LineError>;

/// Reads standard input on a thread, which does not delay the end of the process. The end of the input, or a failure, ends the
/// commands.
pub(super) fn commands() -> io::Result<mpsc::Receiver<Command>> {
    let (sender, receiver) = mpsc::channel(COMMAND_QUEUE);
    std::thread::Builder::new().name("host-input".to_owned()).spawn(move || {
        read(&mut io::stdin().lock(), |command| sender.blocking_send(command).is_ok());
    })?;
    Ok(receiver)
}

/// Passes on each line until the input ends or `take` returns false.
pub(super) fn read(input: &mut impl BufRead, mut take: impl FnMut(Command) -> bool) {
    let mut line = Line::default();
    loop {
        let piece = match input.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // An incomplete line is ignored.
            Err(_) => return,
        };
        let end = piece.iter().position(|byte| *byte == b'\n');
        let (used, is_last) = (end.unwrap_or(piece.len()), piece.is_empty());
        line.add(piece.get(..used).unwrap_or(piece));
        input.consume(used + usize::from(end.is_some()));
        if end.is_none() && !is_last {
            continue;
        }
        if is_last && line.is_empty() {
            return;
        }
        if !take(line.finish()) || is_last {
            return;
        }
    }
}

#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    too_long: bool,
}

impl Line {
    fn add(&mut self, piece: &[u8]) {
        self.too_long |= self.bytes.len() + piece.len() > MAX_LINE;
        if self.too_long {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(piece);
        }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.too_long
    }

    fn finish(&mut self) -> Command {
        let Self { bytes, too_long } = std::mem::take(self);
        if too_long { Err(LineError::TooLong) } else { Incoming::parse(&bytes) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(input: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        // A small buffer, so that lines come in pieces.
        read(&mut BufReader::with_capacity(7, input), |command| {
            found.push(match command {
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
        input.clear();
        input.resize(3 * MAX_LINE, b'x');
        assert_eq!(all(&input), ["too long"]);
    }

    #[test]
    fn reading_ends_where_nobody_takes_the_commands() {
        let mut taken = 0;
        read(&mut &b"{\"type\":\"ping\"}\n{\"type\":\"ping\"}\n"[..], |_| {
            taken += 1;
            false
        });
        assert_eq!(taken, 1);
    }
}
