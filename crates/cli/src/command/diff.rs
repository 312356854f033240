//! Line differences between two texts.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Unchanged lines shown around the changes.
const CONTEXT: usize = 3;

/// After this time the difference may be larger than necessary: some texts would take hours.
const TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    Same(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// The difference in unified format with both names; empty if there is none.
pub fn unified(old_name: &str, old: &str, new_name: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    compare(&old, &new).unified_diff().context_radius(CONTEXT).header(old_name, new_name).to_string()
}

/// All lines of both texts in order. Nothing is omitted, because an approver decides on it.
pub fn all_lines<'a>(old: &'a str, new: &'a str) -> Vec<Change<'a>> {
    let (old, new): (Vec<_>, Vec<_>) = (old.split('\n').collect(), new.split('\n').collect());
    let diff = compare(&old, &new);
    let changes = diff.ops().iter().flat_map(|op| op.iter_slices(&old, &new));
    let lines = changes.flat_map(|(tag, lines)| {
        lines.iter().map(move |line| match tag {
            ChangeTag::Equal => Change::Same(line),
            ChangeTag::Delete => Change::Old(line),
            ChangeTag::Insert => Change::New(line),
        })
    });
    lines.collect()
}

fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> TextDiff<'a, 'a, str> {
    TextDiff::configure().timeout(TIMEOUT).diff_slices(old, new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_three_lines_around_them() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\n4\n5\nsix\n7\n8\n9\n";
        assert_eq!(unified("a", old, "b", new), "--- a\n+++ b\n@@ -3,7 +3,7 @@\n 3\n 4\n 5\n-6\n+six\n 7\n 8\n 9\n");
        assert_eq!(unified("a", old, "b", old), "");
    }

    #[test]
    fn a_new_file_is_all_additions() {
        assert_eq!(unified("/dev/null", "", "b", "x\ny\n"), "--- /dev/null\n+++ b\n@@ -0,0 +1,2 @@\n+x\n+y\n");
        assert_eq!(unified("b", "x\n", "/dev/null", ""), "--- b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    }

    #[test]
    fn what_stands_between_two_changes_is_kept() {
        let shown = unified("a", "x\ny\nz\n", "b", "1\nx\ny\n2\nz\n");
        assert!(shown.ends_with("@@ -1,3 +1,5 @@\n+1\n x\n y\n+2\n z\n"), "{shown}");
    }

    fn described(old: &str, new: &str) -> Vec<String> {
        let changes = all_lines(old, new);
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
        let old = (0..20_000).map(|number| format!("old {number}\n")).collect::<String>();
        let new = (0..20_000).map(|number| format!("new {number}\n")).collect::<String>();
        assert_eq!(described(&old, &new).len(), 40_001);
    }
}
