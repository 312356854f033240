//! Lines of styled text, measured in terminal cells. Their text cannot move the cursor, change colours or be invisible.

use toolgate_approval::visible::visible;
use unicode_width::UnicodeWidthChar;

use crate::output::clean;

/// The maximum number of combining marks per character. More would overlap other lines.
const MAX_MARKS: usize = 2;

/// The meaning of a style. The text itself always conveys it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
    Warning,
    /// The selected row.
    Chosen,
}

/// INVARIANT: the text has been through [`shown`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    text: String,
    tone: Tone,
}

impl Span {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn tone(&self) -> Tone {
        self.tone
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line(Vec<Span>);

impl Line {
    pub(super) fn of(tone: Tone, text: &str) -> Self {
        Self::default().and(tone, text)
    }

    #[must_use]
    pub(super) fn and(mut self, tone: Tone, text: &str) -> Self {
        self.0.push(Span { text: shown(text), tone });
        self
    }

    pub(super) fn spans(&self) -> &[Span] {
        &self.0
    }

    /// The line in exactly this many cells; a mark at the end shows that it was cut.
    #[must_use]
    pub(super) fn fitted(&self, cells: usize) -> Self {
        let mut spans = Vec::new();
        let mut left = cells;
        let whole: usize = self.0.iter().map(|span| width(&span.text)).sum();
        for span in &self.0 {
            let text = if whole > cells { cut(&span.text, left) } else { span.text.clone() };
            left = left.saturating_sub(width(&text));
            spans.push(Span { text, tone: span.tone });
            if left == 0 {
                break;
            }
        }
        let tone = if spans.iter().any(|span| span.tone == Tone::Chosen) { Tone::Chosen } else { Tone::Plain };
        spans.push(Span { text: " ".repeat(left), tone });
        Self(spans)
    }

    pub(super) fn plain(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }
}

/// The maximum number of cells: a terminal may use fewer for combined characters.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(|letter| letter.width().unwrap_or(0)).sum()
}

/// A line of exact text: trailing blanks and tabs are visible, and no character can be mistaken for another.
pub(super) fn exact(line: &str) -> String {
    let kept = line.trim_end_matches(' ');
    let blanks = "␠".repeat(line.len() - kept.len());
    format!("{}{blanks}", visible(kept).replace('\t', "⇥   "))
}

/// Escapes control and invisible characters. Text from [`exact`] stays as it is.
pub(super) fn shown(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut marks = MAX_MARKS;
    for letter in clean(text).chars() {
        if letter.width() != Some(0) {
            marks = 0;
            result.push(letter);
        } else if marks < MAX_MARKS {
            marks += 1;
            result.push(letter);
        } else {
            result.extend(letter.escape_unicode());
        }
    }
    result
}

/// Cuts a text that is already [`shown`] to this many cells, with a mark if it was cut.
pub(super) fn cut(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let Some(room) = cells.checked_sub(1) else { return String::new() };
    format!("{}…", beginning(text, room))
}

/// Wraps a text into rows of at most this many cells.
pub(super) fn wrapped(text: &str, cells: usize) -> Vec<String> {
    // A row has room for the widest character, or this would not terminate.
    let cells = cells.max(2);
    let mut rows = Vec::new();
    let mut row = String::new();
    let mut used = 0;
    for letter in shown(text).chars() {
        let needed = letter.width().unwrap_or(0);
        if used + needed > cells {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        used += needed;
        row.push(letter);
    }
    rows.push(row);
    rows
}

/// As many characters, with their combining marks, as fit.
fn beginning(text: &str, cells: usize) -> String {
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used <= cells
    };
    text.chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_gets_into_a_line() {
        let hostile = "a\u{1b}[2J\u{7}\r\n\u{9b}31m\u{202e}evil\u{200b}\u{feff}";
        let line = Line::of(Tone::Plain, hostile).plain();
        assert!(line.starts_with("a\\u{1b}[2J"), "{line}");
        assert!(line.chars().all(|letter| letter.is_ascii_graphic()), "{line:?}");
    }

    #[test]
    fn every_letter_of_an_exact_text_can_be_told() {
        assert_eq!(exact("\tif a\u{a0}b  "), "⇥   if a\\u{a0}b␠␠");
        assert_ne!(exact("\\u{200b}"), exact("\u{200b}"));
        for text in ["\u{1b}[2K\u{202e}", "\\u{1b}", "e\u{301}", "日本"] {
            assert_eq!(shown(&exact(text)), exact(text));
        }
    }

    #[test]
    fn letters_cannot_carry_towers_of_marks() {
        assert_eq!(shown("e\u{301}"), "e\u{301}");
        assert_eq!(shown("e\u{301}\u{301}\u{301}"), "e\u{301}\u{301}\\u{301}");
        assert!(shown("\u{301}").starts_with('\\'), "a mark without a letter would sit on the border");
    }

    #[test]
    fn wide_letters_are_never_cut_in_half() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("日本語", 1), "…");
        assert_eq!(cut("日本語", 0), "");
        for cells in 0..9 {
            assert_eq!(width(&Line::of(Tone::Plain, "日本語").and(Tone::Good, "ab").fitted(cells).plain()), cells);
        }
    }

    #[test]
    fn wrapping_leaves_nothing_out() {
        assert_eq!(wrapped("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(wrapped("日本語", 5), ["日本", "語"]);
        assert_eq!(wrapped("", 5), [""]);
        let long = "x日\u{1b}e\u{301}".repeat(10_000);
        for cells in [0, 1, 2, 7, 80] {
            let rows = wrapped(&long, cells);
            assert_eq!(rows.concat(), shown(&long), "{cells}");
            assert!(rows.iter().all(|row| width(row) <= cells.max(2)), "{cells}");
        }
    }
}
