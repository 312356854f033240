//! The fault matrix is documented and complete: `docs/faults.md` has a section for each row, in the same order, and
//! every test that a row names exists.

use super::{File, Finding};
use crate::faults::rows::{ROWS, Row};

const PAGE: &str = "docs/faults.md";
const TESTS: &str = "crates/toolgate/tests/system/";
const TABLE: &str = "xtask/src/faults/rows.rs";

/// Differences between the page and the table, and missing tests.
pub fn check(files: &[File]) -> Vec<Finding> {
    compare(files, ROWS)
}

fn compare(files: &[File], rows: &[Row]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let page = files.iter().find(|file| file.path == PAGE);
    let sections: Vec<(usize, &str)> = page
        .into_iter()
        .flat_map(File::lines)
        .filter_map(|(number, line)| Some((number, line.strip_prefix("### ")?)))
        .collect();
    let wrong = |line, message: String| Finding { path: PAGE.to_owned(), line, message };
    for (number, row) in rows.iter().enumerate() {
        match sections.get(number) {
            Some((_, section)) if section.eq_ignore_ascii_case(row.fault) => {}
            Some((line, _)) => findings.push(wrong(*line, format!("the row here is `{}`: see {TABLE}", row.fault))),
            None => findings.push(wrong(1, format!("write a section for `{}`: see {TABLE}", row.fault))),
        }
    }
    for (line, section) in sections.iter().skip(rows.len()) {
        findings.push(wrong(*line, format!("there is no row `{section}` in {TABLE}")));
    }
    for test in rows.iter().flat_map(Row::tests) {
        let name = test.rsplit("::").next().unwrap_or(test);
        if !files.iter().any(|file| file.path.starts_with(TESTS) && file.text.contains(&format!("fn {name}("))) {
            findings.push(Finding { path: TABLE.to_owned(), line: 1, message: format!("there is no test `{test}`") });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> File {
        File::new(PAGE, text)
    }

    fn messages(files: &[File], rows: &[Row]) -> Vec<String> {
        compare(files, rows).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_page_names_the_rows_in_their_order() {
        let rows = &ROWS[..2];
        let tests: String = rows.iter().flat_map(Row::tests).map(test_of).collect();
        let tests = || File::new("crates/toolgate/tests/system/all.rs", tests.clone());
        let [one, two] = [rows[0].fault, rows[1].fault];
        assert_eq!(messages(&[page(&format!("# Faults\n### {one}\n### {two}\n")), tests()], rows), [""; 0]);
        assert_eq!(messages(&[page(&format!("### {two}\n### {one}\n")), tests()], rows).len(), 2);
        assert_eq!(messages(&[page(&format!("### {one}\n")), tests()], rows).len(), 1);
        assert_eq!(messages(&[page(&format!("### {one}\n### {two}\n### plague\n")), tests()], rows).len(), 1);
    }

    #[test]
    fn a_test_that_is_not_there_is_found() {
        let rows = &ROWS[..1];
        let found = messages(&[page(&format!("### {}\n", rows[0].fault))], rows);
        assert_eq!(found.len(), rows[0].tests().count());
    }

    fn test_of(test: &str) -> String {
        format!("fn {}() {{}}\n", test.rsplit("::").next().unwrap())
    }
}
