//! The difference between two short texts, in the unified form that people know.

/// Unchanged lines shown around the changes.
const CONTEXT: usize = 3;

/// More lines than this on a side are shown as replaced altogether.
const LONGEST: usize = 2_000;

/// What becomes of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Removed,
    Added,
}

/// The difference, empty where there is none. The names stand in its first two lines.
pub fn unified(old_name: &str, old: &str, new_name: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let lines = compared(&old, &new);
    let changed = |(_, (fate, _)): &(usize, &(Fate, &str))| *fate != Fate::Kept;
    let first = lines.iter().enumerate().find(changed).map_or(0, |(place, _)| place).saturating_sub(CONTEXT);
    let last = lines.iter().enumerate().rfind(changed).map_or(0, |(place, _)| place) + CONTEXT;
    let shown = lines.get(first..(last + 1).min(lines.len())).unwrap_or_default();
    let count = |without: Fate| shown.iter().filter(|(fate, _)| *fate != without).count();
    // Nothing is changed before the first line that is shown, so that both sides begin at the same line.
    let start = |count: usize| if count == 0 { first } else { first + 1 };
    let (olds, news) = (count(Fate::Added), count(Fate::Removed));
    let mut text = format!("--- {old_name}\n+++ {new_name}\n@@ -{},{olds} +{},{news} @@\n", start(olds), start(news));
    for (fate, line) in shown {
        text.push(match fate {
            Fate::Kept => ' ',
            Fate::Removed => '-',
            Fate::Added => '+',
        });
        text.extend([line, "\n"]);
    }
    text
}

/// Every line of both, in an order that keeps as many as can be kept.
fn compared<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Fate, &'a str)> {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (head, old) = old.split_at(same);
    let new = new.get(same..).unwrap_or_default();
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, tail) = old.split_at(old.len() - same);
    let new = new.get(..new.len() - same).unwrap_or_default();
    let kept = |lines: &[&'a str]| lines.iter().map(|line| (Fate::Kept, *line)).collect::<Vec<_>>();
    let middle = if old.len() > LONGEST || new.len() > LONGEST { replaced(old, new) } else { aligned(old, new) };
    [kept(head), middle, kept(tail)].concat()
}

fn replaced<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Fate, &'a str)> {
    let removed = old.iter().map(|line| (Fate::Removed, *line));
    removed.chain(new.iter().map(|line| (Fate::Added, *line))).collect()
}

/// Along the longest common subsequence.
fn aligned<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Fate, &'a str)> {
    let width = new.len() + 1;
    // At (i, j): how many lines of old[i..] and new[j..] can be kept.
    let mut lengths = vec![0_usize; (old.len() + 1) * width];
    let at = |lengths: &[usize], i: usize, j: usize| lengths.get(i * width + j).copied().unwrap_or_default();
    for (i, old_line) in old.iter().enumerate().rev() {
        for (j, new_line) in new.iter().enumerate().rev() {
            let length = if old_line == new_line {
                at(&lengths, i + 1, j + 1) + 1
            } else {
                at(&lengths, i + 1, j).max(at(&lengths, i, j + 1))
            };
            if let Some(cell) = lengths.get_mut(i * width + j) {
                *cell = length;
            }
        }
    }
    let mut lines = Vec::with_capacity(old.len() + new.len());
    let (mut i, mut j) = (0, 0);
    loop {
        match (old.get(i), new.get(j)) {
            (Some(old_line), Some(new_line)) if old_line == new_line => {
                lines.push((Fate::Kept, *old_line));
                (i, j) = (i + 1, j + 1);
            }
            (Some(old_line), new_line) if new_line.is_none() || at(&lengths, i + 1, j) >= at(&lengths, i, j + 1) => {
                lines.push((Fate::Removed, *old_line));
                i += 1;
            }
            (_, Some(new_line)) => {
                lines.push((Fate::Added, *new_line));
                j += 1;
            }
            _ => return lines,
        }
    }
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
        assert_eq!(unified("b", "x\n", "/dev/null", ""), "--- b\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n");
    }

    #[test]
    fn what_stands_between_two_changes_is_kept() {
        let shown = unified("a", "x\ny\nz\n", "b", "1\nx\ny\n2\nz\n");
        assert!(shown.ends_with("@@ -1,3 +1,5 @@\n+1\n x\n y\n+2\n z\n"), "{shown}");
    }
}
