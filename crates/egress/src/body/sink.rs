//! The bounded buffer that a body ends in.

use std::io;

/// The maximum memory allocated because of a Content-Length.
const TRUSTED_LENGTH: usize = 64 * 1024;

/// Bytes up to a limit.
#[derive(Default)]
pub(super) struct Sink {
    pub(super) body: Vec<u8>,
    pub(super) limit: usize,
    /// Whether there was more than the limit admits.
    pub(super) overflowed: bool,
}

impl Sink {
    pub(super) fn new(limit: usize, expected: usize) -> Self {
        let body = Vec::with_capacity(expected.min(limit).min(TRUSTED_LENGTH));
        Self { body, limit, overflowed: false }
    }

    /// Adds what is within the limit; returns whether all of it was.
    pub(super) fn take(&mut self, data: &[u8]) -> bool {
        let room = self.limit.saturating_sub(self.body.len());
        match data.get(..room) {
            Some(fitting) if fitting.len() < data.len() => {
                self.body.extend_from_slice(fitting);
                self.overflowed = true;
            }
            _ => self.body.extend_from_slice(data),
        }
        !self.overflowed
    }
}

/// For the decoders, which stop at an error.
impl io::Write for Sink {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.take(data) { Ok(data.len()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
