//! The output of a process, line by line, each no longer than is taken.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// Reads lines.
pub(super) struct Lines<R> {
    reader: R,
    limit: usize,
    buffer: Vec<u8>,
    /// How much of the buffer was given out as lines.
    taken: usize,
    /// How much of the buffer was searched for a line end.
    searched: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, buffer: Vec::new(), taken: 0, searched: 0 }
    }

    /// The next line without its end; `None` at the end of the output. What is read is kept if this is cancelled.
    pub(super) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let unseen = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(length) = unseen.iter().position(|byte| *byte == b'\n') {
                let end = self.searched + length;
                // Copied out: the buffer stays for the lines that follow.
                let line = self.buffer.get(self.taken..end).unwrap_or_default();
                let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
                (self.taken, self.searched) = (end + 1, end + 1);
                return Ok(Some(line));
            }
            // Once for each piece: moving it for each line would take the time of all pairs of lines.
            self.buffer.drain(..self.taken);
            (self.taken, self.searched) = (0, self.buffer.len());
            if self.buffer.len() > self.limit {
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
            self.buffer.reserve(PIECE);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Forgets the line so far, which is too long; returns how long it was.
    pub(super) fn skip(&mut self) -> usize {
        let length = self.buffer.len();
        self.buffer.clear();
        (self.taken, self.searched) = (0, 0);
        length
    }
}
