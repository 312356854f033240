//! A page of the documentation, taken apart into what can be tried out.

use std::path::{Path, PathBuf};

/// One page.
pub struct Page {
    /// From the root of the repository.
    pub path: String,
    /// The whole text.
    pub text: String,
    /// The commands of its `console` blocks, in order.
    pub steps: Vec<Step>,
    /// Its `json` blocks, with the line on which each begins.
    pub json: Vec<(usize, String)>,
    /// Its blocks that are files, such as `yaml payments.yaml`: their names and contents. The commands find them there.
    pub files: Vec<(String, String)>,
}

/// One command with what it prints.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// Where the page says it.
    pub line: usize,
    /// The command, of one or more lines.
    pub command: String,
    /// What it prints, with `...` for what is not the same every time.
    pub expected: Vec<String>,
}

impl Page {
    /// The first page and everything in `docs`.
    pub fn all() -> Vec<Self> {
        let files = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut paths: Vec<String> = files.map(|name| format!("docs/{}", name.to_str().unwrap())).collect();
        paths.retain(|path| Path::new(path).extension().is_some_and(|extension| extension == "md"));
        paths.push("README.md".to_owned());
        paths.sort();
        paths.iter().map(|path| Self::named(path)).collect()
    }

    /// The page at this path.
    pub fn named(path: &str) -> Self {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self::parse(path, text)
    }

    /// Its headings, as links name them.
    pub fn headings(&self) -> impl Iterator<Item = String> {
        let titles = self
            .text
            .lines()
            .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
        let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
        titles.map(move |title| title.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-"))
    }

    fn parse(path: &str, text: String) -> Self {
        let mut page =
            Self { path: path.to_owned(), text: String::new(), steps: Vec::new(), json: Vec::new(), files: Vec::new() };
        let mut block = None;
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(mark) = line.trim_start().strip_prefix("```") {
                block = if block.is_some() { None } else { Some(mark.trim()) };
                if block == Some("json") {
                    page.json.push((number, String::new()));
                }
                if let Some((_, name)) = block.and_then(|mark| mark.split_once(' ')) {
                    page.files.push((name.to_owned(), String::new()));
                }
                continue;
            }
            match (block, page.json.last_mut(), page.files.last_mut()) {
                (Some("console"), ..) => page.take(number, line),
                (Some("json"), Some((_, json)), _) => json.extend([line, "\n"]),
                (Some(mark), _, Some((_, content))) if mark.contains(' ') => content.extend([line, "\n"]),
                _ => {}
            }
        }
        assert!(block.is_none(), "{path}: the last block is not closed");
        Self { text, ..page }
    }

    fn take(&mut self, number: usize, line: &str) {
        if let Some(command) = line.strip_prefix("$ ") {
            self.steps.push(Step { line: number, command: command.to_owned(), expected: Vec::new() });
            return;
        }
        let step = self.steps.last_mut().unwrap_or_else(|| panic!("{}:{number}: output without a command", self.path));
        if line.starts_with("    ") && step.expected.is_empty() {
            step.command.extend(["\n", line]);
        } else {
            step.expected.push(line.to_owned());
        }
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn a_page_is_taken_apart_into_commands_and_examples() {
    let text = "# A\n```console\n$ echo one \\\n    two\none two\n$ true\n```\n```json\n{\"a\": 1}\n```\n```sh\n$ no\n```\n\
         ```yaml a.yaml\na: 1\n```\n";
    let page = Page::parse("a.md", text.to_owned());
    let step = |line, command: &str, expected: &[&str]| Step {
        line,
        command: command.to_owned(),
        expected: expected.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(page.steps, [step(3, "echo one \\\n    two", &["one two"]), step(6, "true", &[])]);
    assert_eq!(page.json, [(8, "{\"a\": 1}\n".to_owned())]);
    assert_eq!(page.files, [("a.yaml".to_owned(), "a: 1\n".to_owned())]);
}
