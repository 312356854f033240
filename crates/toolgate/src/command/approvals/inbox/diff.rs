//! What is different between two texts, line by line, with every line of both: nothing is left out of what a person is to
//! judge.

/// The largest table of comparisons. Above that all old lines come first, and all new ones after them.
const MAX_TABLE: usize = 1_000_000;

/// A line of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change<'a> {
    /// In both.
    Same(&'a str),
    /// Only in the old text.
    Old(&'a str),
    /// Only in the new text.
    New(&'a str),
}

/// The lines of both texts in order.
pub(super) fn difference<'a>(old: &'a str, new: &'a str) -> Vec<Change<'a>> {
    let old: Vec<&str> = old.split('\n').collect();
    let new: Vec<&str> = new.split('\n').collect();
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(&new).take_while(same).count();
    let shorter = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(shorter).take_while(same).count();
    let middle =
        |lines: &[&'a str]| lines.iter().copied().skip(head).take(lines.len() - head - tail).collect::<Vec<_>>();
    let mut changes: Vec<Change<'a>> = old.iter().take(head).map(|line| Change::Same(line)).collect();
    changes.extend(compared(&middle(&old), &middle(&new)));
    changes.extend(old.iter().skip(old.len() - tail).map(|line| Change::Same(line)));
    changes
}

/// Keeps as many lines as possible.
fn compared<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Change<'a>> {
    let columns = new.len() + 1;
    let mut changes = Vec::new();
    if old.len().saturating_mul(columns) > MAX_TABLE {
        changes.extend(old.iter().map(|line| Change::Old(line)));
        changes.extend(new.iter().map(|line| Change::New(line)));
        return changes;
    }
    // How many lines can be kept from these places on.
    let mut kept = vec![0_usize; (old.len() + 1) * columns];
    let at = |kept: &[usize], row: usize, column: usize| kept.get(row * columns + column).copied().unwrap_or(0);
    for (row, old_line) in old.iter().enumerate().rev() {
        for (column, new_line) in new.iter().enumerate().rev() {
            let best = if old_line == new_line {
                at(&kept, row + 1, column + 1) + 1
            } else {
                at(&kept, row + 1, column).max(at(&kept, row, column + 1))
            };
            if let Some(cell) = kept.get_mut(row * columns + column) {
                *cell = best;
            }
        }
    }
    let (mut row, mut column) = (0, 0);
    loop {
        match (old.get(row), new.get(column)) {
            (Some(old_line), Some(new_line)) if old_line == new_line => {
                changes.push(Change::Same(old_line));
                row += 1;
                column += 1;
            }
            (Some(old_line), other) if other.is_none() || at(&kept, row + 1, column) >= at(&kept, row, column + 1) => {
                changes.push(Change::Old(old_line));
                row += 1;
            }
            (_, Some(new_line)) => {
                changes.push(Change::New(new_line));
                column += 1;
            }
            (_, None) => return changes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(old: &str, new: &str) -> Vec<String> {
        let changes = difference(old, new);
        let side = |left_out: fn(&Change<'_>) -> bool| {
            let kept = changes.iter().filter(|change| !left_out(change));
            let line = |change: &Change<'_>| match *change {
                Change::Same(line) | Change::Old(line) | Change::New(line) => line.to_owned(),
            };
            kept.map(line).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(side(|change| matches!(change, Change::New(_))), old);
        assert_eq!(side(|change| matches!(change, Change::Old(_))), new);
        let line = |change: &Change<'_>| match change {
            Change::Same(line) => format!(" {line}"),
            Change::Old(line) => format!("-{line}"),
            Change::New(line) => format!("+{line}"),
        };
        changes.iter().map(line).collect()
    }

    #[test]
    fn both_texts_can_be_read_from_their_difference() {
        assert_eq!(described("a\nb\nc", "a\nx\nc"), [" a", "-b", "+x", " c"]);
        assert_eq!(described("a\nb\nc\nd", "b\nd\ne"), ["-a", " b", "-c", " d", "+e"]);
        assert_eq!(described("", "a"), ["-", "+a"]);
        assert_eq!(described("a", "a\n"), [" a", "+"]);
        assert_eq!(described("a\na", "a"), [" a", "-a"]);
        assert_eq!(described("same", "same"), [" same"]);
    }

    #[test]
    fn texts_that_are_too_long_to_compare_are_still_shown_whole() {
        let old = (0..2_000).map(|number| format!("old {number}\n")).collect::<String>();
        let new = (0..2_000).map(|number| format!("new {number}\n")).collect::<String>();
        assert_eq!(described(&old, &new).len(), 4_001);
    }
}
