//! No file contains paths of the machine on which it was written.

use std::path::{Path, PathBuf};

use super::{File, Finding};

/// Directories of every machine: naming them reveals nothing.
const EVERYWHERE: [&str; 6] = ["/home", "/opt", "/srv", "/tmp", "/usr", "/var"];

/// The paths of this machine that must not appear: the directory of the repository, and the user's home.
pub fn of(root: &Path) -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    [root.parent().map(Path::to_path_buf), home]
        .into_iter()
        .flatten()
        .filter(|path| path.is_absolute() && path.parent().is_some())
        .filter(|path| !EVERYWHERE.iter().any(|folder| path == Path::new(folder)))
        .map(|path| format!("{}/", path.display()))
        .collect()
}

/// Lines with one of `homes`, each of which ends with a slash.
pub fn check(file: &File, homes: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        if homes.iter().any(|home| holds_path(line, home)) {
            findings.push(file.finding(number, "a path of this machine"));
        }
    }
    findings
}

/// Whether the absolute path begins anywhere in the line. In `https://example.org/home/` it does not.
fn holds_path(line: &str, home: &str) -> bool {
    line.match_indices(home).any(|(position, _)| {
        let before = line.get(..position).and_then(|text| text.chars().next_back());
        !before.is_some_and(|character| character.is_alphanumeric() || "/._-~}>*".contains(character))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_machine_is_found_only_where_it_begins() {
        let homes = ["/home/ann/".to_owned()];
        let text = "see /home/ann/toolgate\nsee example.org/home/ann/x\nsee /home/anna/y\n\"/home/ann/z\"\n";
        let lines: Vec<usize> = check(&File::new("README.md", text), &homes).iter().map(|found| found.line).collect();
        assert_eq!(lines, [1, 4]);
    }

    #[test]
    fn folders_that_every_machine_has_are_nobodys_home() {
        assert!(of(Path::new("/tmp/toolgate")).iter().all(|home| home != "/tmp/"));
    }

    #[test]
    fn the_root_directory_is_nobodys_home() {
        assert!(of(Path::new("/toolgate")).iter().all(|home| home != "//" && home != "/"));
    }
}
