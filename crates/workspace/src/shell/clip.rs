//! The beginning and the end of an output, in bounded memory.

use std::collections::VecDeque;

/// Keeps the first and the last bytes that were pushed.
#[derive(Debug)]
pub struct Clip {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    seen: usize,
}

impl Clip {
    /// Keeps `most` bytes, half of them from the end.
    pub fn new(most: usize) -> Self {
        Self { half: most / 2, head: Vec::new(), tail: VecDeque::new(), seen: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.seen = self.seen.saturating_add(bytes.len());
        let room = self.half.saturating_sub(self.head.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
    }

    /// The number of bytes pushed.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// Returns the text, with a line that says how many bytes were omitted, and that number.
    pub fn into_text(self) -> (String, usize) {
        let cut = self.seen.saturating_sub(self.head.len()).saturating_sub(self.tail.len());
        let mut bytes = self.head;
        if cut > 0 {
            bytes.extend_from_slice(format!("\n... {cut} bytes omitted ...\n").as_bytes());
        }
        bytes.extend(self.tail);
        (String::from_utf8_lossy(&bytes).into_owned(), cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept_whole() {
        let mut clip = Clip::new(10);
        for part in ["abc", "defg", "hij"] {
            clip.push(part.as_bytes());
        }
        assert_eq!(clip.into_text(), ("abcdefghij".to_owned(), 0));
    }

    #[test]
    fn of_more_the_beginning_and_the_end_are_kept_and_the_gap_is_counted() {
        let mut clip = Clip::new(6);
        for part in ["abcde", "f", "", "ghijklm"] {
            clip.push(part.as_bytes());
        }
        assert_eq!(clip.seen(), 13);
        assert_eq!(clip.into_text(), ("abc\n... 7 bytes omitted ...\nklm".to_owned(), 7));
    }
}
