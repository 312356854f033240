//! Every error code that a caller can meet is explained in `docs/errors.md`.

use super::{File, Finding};

const PAGE: &str = "docs/errors.md";

/// Codes that the page does not mention in backticks. The codes are the arms of the tables in files named `code.rs` or
/// `refusal.rs`.
pub fn check(files: &[File]) -> Vec<Finding> {
    let page = files.iter().find(|file| file.path == PAGE).map_or("", |file| file.text.as_str());
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| has_codes(file)) {
        for (number, line) in file.lines() {
            if let Some(code) = code_in(line).filter(|code| !page.contains(&format!("`{code}`"))) {
                findings.push(file.finding(number, format!("explain the error code `{code}` in {PAGE}")));
            }
        }
    }
    findings
}

fn has_codes(file: &File) -> bool {
    file.path.starts_with("crates/") && matches!(file.name(), "code.rs" | "refusal.rs")
}

/// `GRANT_EXPIRED` from `Self::GrantExpired => "GRANT_EXPIRED",`.
fn code_in(line: &str) -> Option<&str> {
    let (_, value) = line.split_once("=> \"")?;
    let code = value.trim_end().strip_suffix("\",")?;
    let is_code = code.len() > 1
        && code.starts_with(|first: char| first.is_ascii_uppercase())
        && code.chars().all(|character| character.is_ascii_uppercase() || character == '_');
    is_code.then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_without_an_explanation_is_found() {
        let table = "match self {\n    Self::Expired => \"GRANT_EXPIRED\",\n    Self::Denied => \"SCOPE_DENIED\",\n}\n";
        let page = File::new(PAGE, "| `GRANT_EXPIRED` | ask for a new grant |\n| SCOPE_DENIED |\n");
        let found = check(&[page, File::new("crates/server/src/code.rs", table)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 3);
        assert_eq!(check(&[File::new("crates/gate/src/refusal.rs", table)]).len(), 2);
    }

    #[test]
    fn only_tables_of_codes_are_read() {
        let table = "    Self::Active => \"ACTIVE\",\n";
        assert_eq!(check(&[File::new("crates/model/src/status.rs", table)]), []);
        assert_eq!(code_in("    Self::Active => \"active\","), None);
        assert_eq!(code_in("    Self::Active => \"NOT A CODE\","), None);
        assert_eq!(code_in("    \"GRANT_EXPIRED\" => Self::Expired,"), None);
    }
}
