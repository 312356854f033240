//! Aligns cells in columns, within the width of a terminal if there is one. Words are never cut, so that identifiers can be
//! copied.

use unicode_width::UnicodeWidthStr;

const GAP: usize = 2;
/// The indentation of continued rows.
const INDENT: usize = 4;
/// The minimum width of a wrapped column.
const READABLE: usize = 16;

/// What happens to rows that do not fit even with wrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// The columns of a row are divided among several lines.
    Stack,
    /// The last column exceeds the width, and the terminal wraps it.
    Overflow,
}

pub(super) fn arranged(rows: &[Vec<String>], terminal: Option<usize>, excess: Excess) -> String {
    let widths = natural(rows);
    let Some(available) = terminal.filter(|available| total(&widths) > *available) else {
        return lines(rows, &[widths], 0);
    };
    let floors = floors(rows, &widths);
    if total(&floors) <= available {
        return lines(rows, &[shrunk(widths, &floors, available)], 0);
    }
    match excess {
        Excess::Stack => lines(rows, &stacked(&widths, &floors, available), INDENT),
        Excess::Overflow => {
            let mut widths = widths;
            let last = widths.pop().unwrap_or_default();
            let rest = available.saturating_sub(total(&widths) + GAP);
            widths.push(last.min(rest.max(READABLE)));
            lines(rows, &[widths], 0)
        }
    }
}

fn natural(rows: &[Vec<String>]) -> Vec<usize> {
    widest(rows, |cell| cell.width())
}

/// The minimum width of each column: its longest word.
fn floors(rows: &[Vec<String>], widths: &[usize]) -> Vec<usize> {
    let words = widest(rows, |cell| cell.split(' ').map(UnicodeWidthStr::width).max().unwrap_or_default());
    words.iter().zip(widths).map(|(word, width)| (*word).max(READABLE).min(*width)).collect()
}

fn widest(rows: &[Vec<String>], measure: impl Fn(&str) -> usize) -> Vec<usize> {
    let mut widest: Vec<usize> = Vec::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let width = measure(cell);
            match widest.get_mut(column) {
                Some(known) => *known = width.max(*known),
                None => widest.push(width),
            }
        }
    }
    widest
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Shrinks the widest columns until all fit.
fn shrunk(mut widths: Vec<usize>, floors: &[usize], available: usize) -> Vec<usize> {
    while total(&widths) > available {
        let shrinkable = widths.iter_mut().zip(floors).filter(|(width, floor)| **width > **floor);
        match shrinkable.max_by_key(|(width, _)| **width) {
            Some((width, _)) => *width -= 1,
            None => break,
        }
    }
    widths
}

fn stacked(widths: &[usize], floors: &[usize], available: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = vec![Vec::new()];
    for (width, floor) in widths.iter().zip(floors) {
        let indent = |groups: &[Vec<usize>]| if groups.len() > 1 { INDENT } else { 0 };
        let room = available.saturating_sub(indent(&groups));
        let Some(group) = groups.last_mut() else { break };
        let width = (*width).min(available.saturating_sub(INDENT)).max(*floor);
        let fits = |width: usize| group.is_empty() || total(group) + GAP + width <= room;
        if fits(width) {
            group.push(width);
        } else if fits(*floor) && group.len() > 1 {
            group.push(room - total(group) - GAP);
        } else {
            groups.push(vec![width]);
        }
    }
    groups
}

fn lines(rows: &[Vec<String>], groups: &[Vec<usize>], indent: usize) -> String {
    let mut text = String::new();
    for row in rows {
        let mut cells = row.iter();
        for (place, widths) in groups.iter().enumerate() {
            let wrapped: Vec<Vec<String>> =
                cells.by_ref().take(widths.len()).zip(widths).map(|(cell, width)| wrapped(cell, *width)).collect();
            let height = wrapped.iter().map(Vec::len).max().unwrap_or_default();
            for line in 0..height {
                let mut written = " ".repeat(if place == 0 { 0 } else { indent });
                for (cell, width) in wrapped.iter().zip(widths) {
                    let part = cell.get(line).map_or("", String::as_str);
                    written.push_str(part);
                    written.push_str(&" ".repeat(width.saturating_sub(part.width()) + GAP));
                }
                text.push_str(written.trim_end());
                text.push('\n');
            }
        }
    }
    text
}

/// Wraps a cell at spaces.
fn wrapped(cell: &str, width: usize) -> Vec<String> {
    if cell.width() <= width {
        return vec![cell.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in cell.split(' ') {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "inv_0198c1f2d3e47a6b8c9d0e1f2a3b4c5d";

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 5]| cells.map(str::to_owned).to_vec();
        vec![
            row(["ID", "AGENT", "SCOPES", "TIME", "DESCRIPTION"]),
            row([
                ID,
                "billing",
                "charges.create, charges.read",
                "2026-03-08T10:00:00.000+00:00",
                "Charge a card for an order",
            ]),
            row(["inv_1", "x", "-", "2026-03-08T10:00:00.000+00:00", "-"]),
        ]
    }

    #[test]
    fn a_table_fits_every_terminal_and_keeps_every_word() {
        for excess in [Excess::Stack, Excess::Overflow] {
            for width in 40..200 {
                let text = arranged(&rows(), Some(width), excess);
                if excess == Excess::Stack {
                    assert!(text.lines().all(|line| line.width() <= width), "{width}\n{text}");
                }
                for word in rows().iter().flatten().flat_map(|cell| cell.split(' ')) {
                    assert!(text.split_whitespace().any(|found| found == word), "{width}: {word}\n{text}");
                }
            }
        }
        let narrow = arranged(&rows(), Some(20), Excess::Stack);
        assert!(narrow.contains(ID), "a word that is wider than the terminal is left whole:\n{narrow}");
    }

    #[test]
    fn text_wraps_below_its_own_column_before_rows_take_several_lines() {
        let text = arranged(&rows(), Some(125), Excess::Stack);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(lines[0].find("SCOPES"), lines[1].find("charges.create"), "{text}");
        assert_eq!(lines[0].find("SCOPES"), lines[2].find("charges.read"), "{text}");
        let text = arranged(&rows(), Some(80), Excess::Stack);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6, "{text}");
        assert!(lines[1].starts_with("    TIME") && lines[3].starts_with("    2026-03-08"), "{text}");
    }

    #[test]
    fn what_a_program_reads_has_one_line_for_each_row() {
        let text = arranged(&rows(), None, Excess::Stack);
        assert_eq!(text.lines().count(), 3);
        let wide = vec![vec!["あ".to_owned(), "b".to_owned()], vec!["cc".to_owned(), "d".to_owned()]];
        assert_eq!(arranged(&wide, None, Excess::Stack), "あ  b\ncc  d\n");
    }
}
