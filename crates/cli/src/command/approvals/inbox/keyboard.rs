//! Decodes keys and pastes from terminal input. Unknown sequences are skipped completely, so that no character inside them is
//! taken for a key.

use std::io::{self, Read};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const MAX_SEQUENCE: usize = 64;
const MAX_PASTE: usize = 16 * 1024;
const PASTE_ENDS: &[u8] = b"\x1b[201~";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    Letter(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C, or the end of the input.
    Interrupt,
    /// Pasted text, truncated to the limit.
    Paste(String),
}

/// Reads standard input on a thread. Bytes that arrive together stay together.
pub(super) fn listen() -> io::Result<UnboundedReceiver<Vec<u8>>> {
    let (sender, receiver) = unbounded_channel();
    std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut buffer = [0; 1024];
        loop {
            match stdin.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The channel closes with this thread, which signals the end of the input.
                Err(_) | Ok(0) => return,
                Ok(count) => {
                    let Some(bytes) = buffer.get(..count) else { return };
                    if sender.send(bytes.to_vec()).is_err() {
                        return;
                    }
                }
            }
        }
    })?;
    Ok(receiver)
}

#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// An incomplete sequence.
    rest: Vec<u8>,
    /// An incomplete paste.
    paste: Option<Vec<u8>>,
}

impl Decoder {
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Input> {
        // On its own it is always Ctrl-C, even in a paste whose end was lost: there must be a way out.
        if bytes == [0x03] {
            *self = Self::default();
            return vec![Input::Interrupt];
        }
        let mut inputs = Vec::new();
        self.rest.extend_from_slice(bytes);
        loop {
            let rest = std::mem::take(&mut self.rest);
            let (used, input) = match &mut self.paste {
                Some(paste) => pasted(paste, &rest),
                None => key(&rest),
            };
            match input {
                Found::Input(input) => {
                    self.paste = None;
                    inputs.push(input);
                }
                Found::PasteBegins => self.paste = Some(Vec::new()),
                Found::Nothing => {}
            }
            self.rest = rest.into_iter().skip(used).collect();
            if used == 0 || self.rest.is_empty() {
                break;
            }
        }
        // An invalid sequence must not consume the keys that follow it.
        if self.rest.len() > MAX_SEQUENCE {
            self.rest.clear();
        }
        inputs
    }
}

enum Found {
    Input(Input),
    PasteBegins,
    Nothing,
}

/// The length of the first key and the key; zero if it is incomplete.
fn key(bytes: &[u8]) -> (usize, Found) {
    let input = |input| (1, Found::Input(input));
    match bytes.first() {
        None => (0, Found::Nothing),
        Some(b'\r' | b'\n') => input(Input::Enter),
        Some(0x7f | 0x08) => input(Input::Backspace),
        Some(0x03) => input(Input::Interrupt),
        Some(0x1b) => escape_sequence(bytes),
        Some(0..0x20) => (1, Found::Nothing),
        Some(first) => letter(*first, bytes),
    }
}

fn letter(first: u8, bytes: &[u8]) -> (usize, Found) {
    let length = match first {
        0x00..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..=0xff => 4,
        0x80..0xc0 => return (1, Found::Nothing),
    };
    let Some(sequence) = bytes.get(..length) else { return (0, Found::Nothing) };
    match std::str::from_utf8(sequence).ok().and_then(|text| text.chars().next()) {
        Some(letter) if !letter.is_control() => (length, Found::Input(Input::Letter(letter))),
        Some(_) => (length, Found::Nothing),
        None => (1, Found::Nothing),
    }
}

fn escape_sequence(bytes: &[u8]) -> (usize, Found) {
    match bytes.get(1) {
        // A terminal sends its sequences in one piece: this was the key.
        None => (1, Found::Input(Input::Escape)),
        Some(b'[') => control_sequence(bytes),
        Some(b'O') => match bytes.get(2) {
            None => (0, Found::Nothing),
            Some(last) => (3, named(*last, b"")),
        },
        Some(0x1b) => (1, Found::Input(Input::Escape)),
        // With Alt held down: no key of ours.
        Some(_) => (2, Found::Nothing),
    }
}

fn control_sequence(bytes: &[u8]) -> (usize, Found) {
    let Some(end) = bytes.iter().skip(2).position(|byte| (0x40..0x7f).contains(byte)) else {
        return (0, Found::Nothing);
    };
    let parameters = bytes.get(2..2 + end).unwrap_or_default();
    let last = bytes.get(2 + end).copied().unwrap_or_default();
    (end + 3, named(last, parameters))
}

fn named(last: u8, parameters: &[u8]) -> Found {
    Found::Input(match (last, parameters) {
        (b'A', b"") => Input::Up,
        (b'B', b"") => Input::Down,
        (b'H', b"") | (b'~', b"1" | b"7") => Input::Home,
        (b'F', b"") | (b'~', b"4" | b"8") => Input::End,
        (b'~', b"5") => Input::PageUp,
        (b'~', b"6") => Input::PageDown,
        (b'~', b"200") => return Found::PasteBegins,
        _ => return Found::Nothing,
    })
}

/// Takes what belongs to the paste, up to and with its end.
fn pasted(paste: &mut Vec<u8>, bytes: &[u8]) -> (usize, Found) {
    let end = bytes.windows(PASTE_ENDS.len()).position(|window| window == PASTE_ENDS);
    // The end may have come in part.
    let length = end.unwrap_or_else(|| bytes.len().saturating_sub(PASTE_ENDS.len() - 1));
    let room = MAX_PASTE.saturating_sub(paste.len());
    paste.extend(bytes.iter().take(length.min(room)));
    match end {
        Some(end) => {
            let text = String::from_utf8_lossy(paste).into_owned();
            (end + PASTE_ENDS.len(), Found::Input(Input::Paste(text)))
        }
        None => (length, Found::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<Input> {
        let mut decoder = Decoder::default();
        pieces.iter().flat_map(|piece| decoder.read(piece)).collect()
    }

    #[test]
    fn keys_are_told_apart() {
        assert_eq!(read(&[b"o\r\x7f\x03"]), [Input::Letter('o'), Input::Enter, Input::Backspace, Input::Interrupt]);
        assert_eq!(read(&[b"\x1b[A\x1bOB\x1b[5~\x1b[6~"]), [Input::Up, Input::Down, Input::PageUp, Input::PageDown]);
        assert_eq!(read(&["é日".as_bytes()]), [Input::Letter('é'), Input::Letter('日')]);
        assert_eq!(read(&[b"\x1b"]), [Input::Escape]);
        assert_eq!(read(&[b"\xe6\x97", b"\xa5"]), [Input::Letter('日')]);
        assert_eq!(read(&[b"\x1b[", b"A"]), [Input::Up]);
    }

    #[test]
    fn a_letter_inside_of_a_sequence_is_no_key() {
        assert_eq!(read(&[b"\x1bo"]), []);
        assert_eq!(read(&[b"\x1b[1;3oy"]), [Input::Letter('y')]);
        assert_eq!(read(&[b"\x1b[99~\x1b[1;5A\x1bOo\x00\x0f"]), []);
        assert_eq!(read(&[b"\xff\xfe\x80"]), []);
    }

    #[test]
    fn what_is_pasted_is_no_key_however_it_is_cut() {
        let bytes = b"\x1b[200~o\ry\x1b[A\x03\x1b[201~k";
        // An escape that comes alone would be the key.
        for size in 2..bytes.len() {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            let inputs = read(&pieces);
            assert_eq!(inputs, [Input::Paste("o\ry\u{1b}[A\u{3}".to_owned()), Input::Letter('k')], "{size}");
        }
        let endless = [b"\x1b[200~".to_vec(), vec![b'o'; 100_000]].concat();
        assert_eq!(read(&[&endless, b"o\ry"]), []);
        assert_eq!(read(&[&endless, b"\x03", b"q"]), [Input::Interrupt, Input::Letter('q')]);
    }

    #[test]
    fn any_bytes_can_be_read() {
        let mut decoder = Decoder::default();
        let mut seed = 7_u32;
        for _ in 0..50_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let byte = seed.to_be_bytes()[0];
            decoder.read(&[byte, if byte < 64 { 0x1b } else { byte }]);
            assert!(decoder.rest.len() <= MAX_SEQUENCE);
        }
    }
}
