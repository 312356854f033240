//! Links between the pages of the repository lead somewhere.

use super::{File, Finding};

/// Links of a page to files that do not exist. `exists` is called with paths from the root.
pub fn check(file: &File, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.is("md") {
        return findings;
    }
    let mut in_code = false;
    for (number, line) in file.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for target in targets(line) {
            match resolve(&file.path, target) {
                Some(path) if exists(&path) => {}
                _ => findings.push(file.finding(number, format!("the link to `{target}` is broken"))),
            }
        }
    }
    findings
}

/// The relative targets of `[text](target)` in a line, without their anchors; inline code is skipped.
fn targets(line: &str) -> Vec<&str> {
    let outside_code = line.split('`').step_by(2);
    let after_brackets = outside_code.flat_map(|text| text.split("](").skip(1));
    after_brackets
        .filter_map(|rest| rest.split([')', ' ']).next())
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
        .collect()
}

/// The path from the root; `None` if the link leaves the repository.
fn resolve(page: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> Vec<String> {
        let there = ["README.md", "docs/cli.md", "docs"];
        check(&File::new(path, text), |target| there.contains(&target)).into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text = "[a](cli.md) and [b](../README.md#start), [c](https://example.org/x), [d](#here), [e](./)\n";
        assert_eq!(broken("docs/errors.md", text), [""; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        assert_eq!(
            broken("README.md", "[a](docs/cli.md) [b](docs/lost.md)\n"),
            ["the link to `docs/lost.md` is broken"]
        );
        assert_eq!(broken("README.md", "[a](../other/README.md)\n").len(), 1);
        assert_eq!(broken("README.md", "[a](/docs/cli.md)\n").len(), 1);
    }

    #[test]
    fn code_is_not_read_as_links() {
        assert_eq!(broken("README.md", "`[a](lost.md)`\n```\n[b](lost.md)\n```\n"), [""; 0]);
        assert_eq!(broken("src.rs", "[a](lost.md)"), [""; 0]);
    }
}
