//! Reads lines of limited length, for protocols of lines of JSON on standard input. A line that is too long is skipped.

use std::io::{self, BufRead};

use tokio::sync::mpsc;

/// A line without its end, or that it was too long.
pub(super) type Line = Result<Vec<u8>, TooLong>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// Reads and parses standard input on a thread, which does not delay the end of the process. The end of the input, or a
/// failure, ends the lines. At most `queue` of them are held.
pub(super) fn standard_input<T: Send + 'static>(
    thread: &str,
    queue: usize,
    limit: usize,
    parse: impl Fn(Line) -> T + Send + 'static,
) -> io::Result<mpsc::Receiver<T>> {
    let (sender, receiver) = mpsc::channel(queue);
    std::thread::Builder::new().name(thread.to_owned()).spawn(move || {
        read(&mut io::stdin().lock(), limit, |line| sender.blocking_send(parse(line)).is_ok());
    })?;
    Ok(receiver)
}

/// Passes on each line until the input ends or `take` returns false.
pub(super) fn read(input: &mut impl BufRead, limit: usize, mut take: impl FnMut(Line) -> bool) {
    let mut line = Partial { bytes: Vec::new(), too_long: false, limit };
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

struct Partial {
    bytes: Vec<u8>,
    too_long: bool,
    limit: usize,
}

impl Partial {
    fn add(&mut self, piece: &[u8]) {
        self.too_long |= self.bytes.len() + piece.len() > self.limit;
        if self.too_long {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(piece);
        }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.too_long
    }

    fn finish(&mut self) -> Line {
        let too_long = std::mem::take(&mut self.too_long);
        let bytes = std::mem::take(&mut self.bytes);
        if too_long { Err(TooLong) } else { Ok(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(input: &[u8]) -> Vec<Line> {
        let mut found = Vec::new();
        // A small buffer, so that lines come in pieces.
        read(&mut BufReader::with_capacity(7, input), 20, |line| {
            found.push(line);
            true
        });
        found
    }

    #[test]
    fn every_line_is_passed_on_and_the_last_needs_no_end() {
        assert_eq!(all(b""), []);
        assert_eq!(all(b"a\n\nbb\r\n"), [Ok(b"a".to_vec()), Ok(Vec::new()), Ok(b"bb\r".to_vec())]);
        assert_eq!(all(b"a\nb"), [Ok(b"a".to_vec()), Ok(b"b".to_vec())]);
    }

    #[test]
    fn a_line_that_is_too_long_is_one_error_and_the_next_is_read() {
        assert_eq!(all(&[b'x'; 20]), [Ok(vec![b'x'; 20])]);
        let input = [&[b'x'; 90][..], b"\na\n"].concat();
        assert_eq!(all(&input), [Err(TooLong), Ok(b"a".to_vec())]);
        assert_eq!(all(&[b'x'; 90]), [Err(TooLong)]);
    }

    #[test]
    fn reading_ends_where_nobody_takes_the_lines() {
        let mut taken = 0;
        read(&mut &b"a\nb\n"[..], 20, |_| {
            taken += 1;
            false
        });
        assert_eq!(taken, 1);
    }
}
