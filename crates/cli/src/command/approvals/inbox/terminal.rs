//! Switches the terminal to raw mode and the alternate screen, and restores it.

use std::io::{self, Write};
use std::sync::Once;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::screen::Size;
use super::text::{Line, Tone};

/// Alternate screen, bracketed paste, hidden cursor.
const BEGIN: &str = "\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b[2J";
const END: &str = "\x1b[0m\x1b[?25h\x1b[?2004l\x1b[?1049l";
/// Cursor to the top left.
const TOP: &str = "\x1b[H";

pub(super) struct Terminal {
    before: Termios,
    colours: bool,
}

impl Terminal {
    /// The terminal is restored when this is dropped, and before a panic message is printed.
    pub(super) fn take() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        give_back_before_panics(before.clone());
        let mut raw = before.clone();
        raw.make_raw();
        // Discards what was typed before.
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        let terminal = Self { before, colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) };
        write(BEGIN)?;
        Ok(terminal)
    }

    pub(super) fn size() -> io::Result<Size> {
        let size = tcgetwinsize(io::stdout())?;
        Ok(Size { columns: size.ws_col, rows: size.ws_row })
    }

    pub(super) fn draw(&self, lines: &[Line]) -> io::Result<()> {
        write(&frame(lines, self.colours))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back(&self.before);
    }
}

fn give_back(before: &Termios) {
    // A failure cannot be reported.
    let _ = write(END);
    let _ = tcsetattr(io::stdin(), OptionalActions::Flush, before);
}

fn give_back_before_panics(before: Termios) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let then = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back(&before);
            then(panic);
        }));
    });
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// The lines with escape sequences for their tones.
fn frame(lines: &[Line], colours: bool) -> String {
    let mut text = TOP.to_owned();
    for (number, line) in lines.iter().enumerate() {
        if number > 0 {
            text.push_str("\r\n");
        }
        for span in line.spans() {
            text.push_str(look(span.tone(), colours));
            text.push_str(span.text());
            text.push_str("\x1b[0m");
        }
    }
    text
}

fn look(tone: Tone, colours: bool) -> &'static str {
    match (tone, colours) {
        (Tone::Plain, _) | (Tone::Good, false) => "",
        (Tone::Strong, _) | (Tone::Warning | Tone::Bad, false) => "\x1b[1m",
        (Tone::Faint, _) => "\x1b[2m",
        (Tone::Good, true) => "\x1b[32m",
        (Tone::Warning, true) => "\x1b[33m",
        (Tone::Bad, true) => "\x1b[1;31m",
        (Tone::Chosen, _) => "\x1b[7m",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_there_is_no_colour_and_the_same_text() {
        let lines = [Line::of(Tone::Bad, "! risky").and(Tone::Good, "= granted"), Line::of(Tone::Warning, "+ new")];
        let [plain, coloured] = [false, true].map(|colours| frame(&lines, colours));
        assert!(coloured.contains("\x1b[1;31m") && coloured.contains("\x1b[32m"));
        assert!(!plain.contains("\x1b[3") && !plain.contains(";3"), "{plain:?}");
        for text in ["! risky", "= granted", "+ new"] {
            assert!(plain.contains(text) && coloured.contains(text));
        }
    }

    #[test]
    fn the_only_sequences_in_a_frame_are_our_own() {
        let hostile = "\x1b]0;title\x07\x1b[2J\u{9b}31m\r\n";
        let text = frame(&[Line::of(Tone::Plain, hostile)], false);
        assert_eq!(text.matches('\x1b').count(), 2, "{text:?}");
        assert!(!text.contains(['\x07', '\u{9b}', '\r', '\n']), "{text:?}");
    }
}
