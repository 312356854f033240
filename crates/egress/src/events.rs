//! Server-sent events: their names and data. Streams are not resumed, so ids mean nothing.

/// The longest event, in bytes.
pub(crate) const EVENT_LIMIT: usize = 1024 * 1024;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) data: Vec<u8>,
}

/// Takes a stream apart into its events.
#[derive(Default)]
pub(crate) struct Events {
    /// The end of the stream so far that is no whole line yet.
    rest: Vec<u8>,
    /// How much of it was searched for a line end.
    searched: usize,
    name: Option<Vec<u8>>,
    data: Vec<u8>,
    has_data: bool,
    /// Whether the last line ended with a carriage return, whose line feed may come with the next piece.
    after_return: bool,
}

/// An event that is longer than is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Events {
    /// Takes the next piece of the stream; gives the events that end in it.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<Event>, TooLong> {
        self.rest.extend_from_slice(piece);
        let mut events = Vec::new();
        let mut taken = 0;
        if self.after_return && !self.rest.is_empty() {
            taken = usize::from(self.rest.first() == Some(&b'\n'));
            self.after_return = false;
        }
        let mut from = self.searched.max(taken);
        while let Some(length) = self.rest.get(from..).and_then(|rest| rest.iter().position(|byte| is_end(*byte))) {
            let end = from + length;
            let line = self.rest.get(taken..end).unwrap_or_default().to_vec();
            let ended_by = self.rest.get(end).copied();
            taken = end + 1;
            if ended_by == Some(b'\r') {
                match self.rest.get(taken) {
                    Some(b'\n') => taken += 1,
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
            from = taken;
            self.line(&line, &mut events)?;
        }
        self.rest.drain(..taken.min(self.rest.len()));
        self.searched = self.rest.len();
        if self.rest.len() > EVENT_LIMIT { Err(TooLong) } else { Ok(events) }
    }

    fn line(&mut self, line: &[u8], events: &mut Vec<Event>) -> Result<(), TooLong> {
        if line.is_empty() {
            let name = self.name.take();
            if std::mem::take(&mut self.has_data) {
                events.push(Event { name, data: std::mem::take(&mut self.data) });
            }
            return Ok(());
        }
        if let Some(name) = field(line, b"event") {
            self.name = Some(name.to_vec()).filter(|name| !name.is_empty());
            return Ok(());
        }
        let Some(value) = field(line, b"data") else { return Ok(()) };
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        if self.data.len() > EVENT_LIMIT { Err(TooLong) } else { Ok(()) }
    }
}

/// The value of a line, if it is of this field.
fn field<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let rest = line.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with(b":"))?;
    let value = rest.strip_prefix(b":").unwrap_or(rest);
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

fn is_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(stream: &[u8], pieces: usize) -> Vec<String> {
        let mut reader = Events::default();
        let pieces = stream.chunks(pieces);
        let events = pieces.flat_map(|piece| reader.push(piece).unwrap());
        let shown = |event: Event| {
            let name = event.name.map(|name| format!("{} ", String::from_utf8(name).unwrap())).unwrap_or_default();
            name + &String::from_utf8(event.data).unwrap()
        };
        events.map(shown).collect()
    }

    #[test]
    fn an_event_is_its_data_however_the_stream_is_cut_and_its_lines_end() {
        for end in ["\n", "\r\n", "\r"] {
            let stream =
                ": hello\nid: 1\nevent: message\ndata: {\"a\":\ndata:1}\n\nretry: 3\n\ndata\n\ndata: last\n\ndata: cut";
            let stream = stream.replace('\n', end);
            for pieces in [1, 2, 3, 7, 1000] {
                assert_eq!(events(stream.as_bytes(), pieces), ["message {\"a\":\n1}", "", "last"], "{end:?} {pieces}");
            }
        }
    }

    #[test]
    fn what_grows_without_end_is_an_error() {
        let mut reader = Events::default();
        let piece = vec![b'x'; 64 * 1024];
        assert!((0..32).any(|_| reader.push(&piece).is_err()), "a line");
        let mut reader = Events::default();
        let piece = [b"data: ", &piece[..], b"\n"].concat();
        assert!((0..32).any(|_| reader.push(&piece).is_err()), "an event");
    }
}
