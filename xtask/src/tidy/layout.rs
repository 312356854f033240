//! The layout of files: limited length, a first line that says what they are for, no trailing whitespace.

use super::{File, Finding};

/// The maximum length of a Rust file. Most should stay under 300 lines.
const LONGEST: usize = 500;

/// File types whose last line must end with a newline.
const ENDED: [&str; 7] = ["md", "py", "rs", "sh", "sql", "toml", "yml"];

/// Length, name, opening, blanks.
pub fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let rust = file.is("rs");
    if rust {
        let lines = file.text.lines().count();
        if lines > LONGEST {
            findings.push(file.finding(LONGEST, format!("{lines} lines: split it by noun, {LONGEST} is the most")));
        }
        if file.name() == "mod.rs" {
            findings.push(file.finding(1, "no mod.rs: put foo.rs beside the folder foo"));
        }
        if in_sources(&file.path) && !file.text.starts_with("//!") {
            findings.push(file.finding(1, "the first line must be a `//!` comment that says what the module is for"));
        }
    }
    if rust || file.is("md") {
        for (number, line) in file.lines() {
            if line.ends_with([' ', '\t']) {
                findings.push(file.finding(number, "trailing whitespace"));
            } else if line.contains('\t') {
                findings.push(file.finding(number, "a tab: indent with spaces"));
            }
        }
    }
    if ENDED.iter().any(|extension| file.is(extension)) && !file.text.is_empty() && !file.text.ends_with('\n') {
        findings.push(file.finding(file.text.lines().count(), "the last line does not end with a newline"));
    }
    findings
}

/// Is it `crates/NAME/src/...` or `xtask/src/...`?
fn in_sources(path: &str) -> bool {
    let mut parts = path.split('/');
    match parts.next() {
        Some("crates") => parts.nth(1) == Some("src"),
        Some("xtask") => parts.next() == Some("src"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&File::new(path, text)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_clean_module_passes() {
        assert_eq!(messages("crates/model/src/scope.rs", "//! Scopes.\n\npub struct Scope;\n"), [""; 0]);
    }

    #[test]
    fn a_long_file_is_found() {
        let text = "//! Long.\n".to_owned() + &"\n".repeat(499);
        assert_eq!(messages("crates/model/src/scope.rs", &text), [""; 0]);
        let found = messages("crates/model/src/scope.rs", &(text + "\n"));
        assert_eq!(found, ["crates/model/src/scope.rs:500: 501 lines: split it by noun, 500 is the most"]);
    }

    #[test]
    fn mod_rs_is_found() {
        assert_eq!(messages("crates/model/tests/a/mod.rs", "").len(), 1);
    }

    #[test]
    fn a_module_without_a_purpose_is_found_but_tests_need_none() {
        assert_eq!(messages("xtask/src/main.rs", "fn main() {}\n").len(), 1);
        assert_eq!(messages("crates/gate/src/lib.rs", "").len(), 1);
        assert_eq!(messages("crates/gate/tests/path.rs", "fn main() {}\n").len(), 0);
    }

    #[test]
    fn blanks_tabs_and_unended_lines_are_found_where_they_are() {
        let found = messages("README.md", "one \n\ttwo\nthree");
        assert_eq!(found.len(), 3);
        assert!(found[0].starts_with("README.md:1: trailing whitespace"), "{found:?}");
        assert!(found[1].starts_with("README.md:2: a tab"), "{found:?}");
        assert!(found[2].starts_with("README.md:3: the last line"), "{found:?}");
        assert_eq!(messages("LICENSE", "\tfree").len(), 0);
    }
}
